"""The judge: runs a check with the package's scripts, and with scripts that it must convict, on one server."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults.callers import caller
from tests.faults.rig import NEED_EXACT_CLOCK, Check, Fault, Rig
from tests.support.clock import START_MS
from tests.support.designs import Design, designs, lay_over, package_scripts
from tests.support.running import BaseServer
from tests.support.witness import LuaFiles

Edits = Mapping[str, tuple[str, str]]
"""By the name of a script: a text that stands in it once, and what stands there instead."""

DESIGNS = {design.name: design for design in designs()}
_numbers = itertools.count()


@dataclass(frozen=True)
class Control:
    """What a check must convict: a known-bad design, or the package's scripts with a line changed."""

    check: Check
    fault: str
    """A pattern of what the check says."""
    design: str = ""
    edits: Edits = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.check.__name__}-{self.design or 'edited'}"


def prepare(host: BaseServer) -> None:
    """An empty database, and the clock at its start."""
    host.flush()
    if host.clock.exact:
        host.clock.set_ms(START_MS, touch=())


class Judge:
    """Holds checks against the scripts on one server."""

    def __init__(self, host: BaseServer, folder: Path) -> None:
        """`folder` is where the scripts of designs are laid out."""
        self.host = host
        self._folder = folder

    @contextlib.contextmanager
    def rig(self, design: str = "", edits: Edits | None = None) -> Iterator[Rig]:
        """An empty queue with the package's scripts, those of a design, or the package's with `edits`."""
        prepare(self.host)
        chosen = DESIGNS[design] if design else None
        rig = Rig(self.host, caller(self.host, self._lua(chosen, edits or {}), chosen))
        rig.caller.name = f"{design or ('edited' if edits else 'redisq')}/{self.host.name}"
        self.host.clock.prefixes = [rig.prefix]
        try:
            yield rig
        finally:
            rig.close()

    def passes(self, check: Check, design: str = "") -> None:
        """The package's scripts, or those of a design, do what the check asks."""
        self._may_skip(check)
        with self.rig(design) as rig:
            check(rig)

    def convicts(self, control: Control) -> None:
        """The check finds the fault."""
        self._may_skip(control.check)
        with self.rig(control.design, control.edits) as rig, pytest.raises(Fault, match=control.fault):
            control.check(rig)

    def shows(self, check: Check, fault: str) -> None:
        """The original has the fault, and the package's scripts do not."""
        self.passes(check)
        self.convicts(Control(check, fault, "original"))

    def keeps(self, check: Check) -> None:
        """The package's scripts do what the original does."""
        self.passes(check)
        self.passes(check, "original")

    def _may_skip(self, check: Check) -> None:
        if check in NEED_EXACT_CLOCK and not self.host.clock.exact:
            pytest.skip(f"{self.host.name}: no exact instants here: {self.host.clock.reason}")

    def _lua(self, design: Design | None, edits: Edits) -> LuaFiles:
        folder = self._folder / (design.name if design else f"edited-{next(_numbers)}")
        if design is not None and not folder.exists():
            lay_over(design, folder)
        elif design is None:
            folder.mkdir()
            for name, source in package_scripts().items():
                (folder / name).write_text(edited(source, *edits.get(name.removesuffix(".lua"), ("", ""))))
        return LuaFiles(folder)


def edited(source: str, old: str, new: str) -> str:
    """The script with a text that stands in it once replaced; the same script if there is none."""
    if not old:
        return source
    if source.count(old) != 1:
        raise ValueError(f"this stands {source.count(old)} times in the script, not once: {old}")
    return source.replace(old, new)
