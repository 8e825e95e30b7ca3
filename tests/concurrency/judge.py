"""Both checkers on one history, and what they must say together."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1
from pathlib import Path
from tempfile import TemporaryDirectory

from redisq.scripts import SCRIPTS
from tests.concurrency import blackbox, server_order
from tests.concurrency.history import History
from tests.concurrency.plan import PREFIX
from tests.concurrency.timeline import page
from tests.concurrency.verdict import ACCEPTED, REJECTED, Verdict
from tests.support.designs import Design, lay_over

PACKAGE = {script.sha: name for name, script in SCRIPTS.items()}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the two say."""

    by_server: Verdict
    by_clients: Verdict

    @property
    def accepted(self) -> bool:
        """Whether both accept."""
        return self.by_server.kind == self.by_clients.kind == ACCEPTED

    @property
    def rejected(self) -> bool:
        """Whether both reject."""
        return self.by_server.kind == self.by_clients.kind == REJECTED

    def __str__(self) -> str:
        alike = "" if self.by_server.kind == self.by_clients.kind else "THE CHECKERS DO NOT AGREE\n"
        return f"{alike}by the server's order: {self.by_server}\nby the clients alone: {self.by_clients}"


def judge(history: History, design: Design | None = None) -> Judgement:
    """Judges a history of the package's scripts, or of a design's."""
    original = design is not None and design.name == "original"
    unscripted = frozenset(["nack"] if design is not None and design.nack is not None else [])
    first = server_order.check(history, PREFIX, scripts_of(design), unscripted=unscripted, tells_lengths=not original)
    return Judgement(first, blackbox.check(history, tells_lengths=not original))


def scripts_of(design: Design | None) -> dict[str, str]:
    """The scripts by SHA-1."""
    if design is None:
        return PACKAGE
    if design.name == "original":
        sources = {path.stem: path.read_bytes() for path in design.path.glob("*.lua")}
    else:
        with TemporaryDirectory() as folder:
            sources = {path.stem: path.read_bytes() for path in lay_over(design, Path(folder)).glob("*.lua")}
    # The drain is the package's.
    return PACKAGE | {sha1(source, usedforsecurity=False).hexdigest(): name for name, source in sources.items()}


def report(history: History, judgement: Judgement, path: Path) -> str:
    """Writes the timeline, and says where."""
    path.write_text(page(history, [judgement.by_server, judgement.by_clients]), encoding="utf-8")
    return f"{judgement}\ntimeline: {path}"
