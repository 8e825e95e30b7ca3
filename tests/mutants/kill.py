"""The ways to kill a mutant: the cases, explored transitions, the lint, what it costs, the machine, a real server."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import lupa.lua51  # type: ignore[import-untyped]
import pytest

from model.scope import SCOPES
from tests import differential
from tests.exploration.refine import Executor
from tests.exploration.transitions import Transition, collect
from tests.faults.callers import caller
from tests.faults.checks import CHECKS
from tests.faults.judge import prepare
from tests.faults.rig import Fault, Rig
from tests.mutants.generate import Mutant
from tests.support.campaign import campaign
from tests.support.cases import CASES, read_pages
from tests.support.designs import package_scripts
from tests.support.fake import FakeHost
from tests.support.lua_lint import lint
from tests.support.running import BaseServer
from tests.support.shifted import replay
from tests.support.trial import Tally
from tests.support.witness import LuaFiles, Scripts

OPERATIONS = 3_000  # of the machine, for each mutant that the cases let live
OF_SCRIPTS = read_pages([Path(differential.__file__).with_name("of_scripts.md")]).cases
SMALL = SCOPES["small"]
SCOPES_OF_ALL = (  # what each mutant is held against
    SMALL,
    replace(SMALL, messages=1, foreign=1),
    replace(SMALL, groups=1, workers=1, foreign=2),
)
ON_A_SERVER = ("E5", "E15")  # the checks of what only a real server shows
SECONDS = 40.0  # of the processor for one stage, which takes 2 to 10; a mutant that is still busy then never ends


class Hangs(BaseException):
    """A script that does not end. No Exception, for none of those between may catch it."""


@contextmanager
def watched(seconds: float) -> Iterator[list[bool]]:
    """Raises ``Hangs`` inside it after so much time of the processor, and notes that in the list.

    A script stops when it next calls a command.
    """
    fired: list[bool] = []

    def expire(*_: object) -> None:
        fired.append(True)
        raise Hangs

    before = signal.signal(signal.SIGPROF, expire)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield fired
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def compiles(source: str) -> bool:
    """Whether it is Lua at all: what is not is no mutant."""
    try:
        lupa.lua51.LuaRuntime().compile(source)
    except lupa.lua51.LuaError:
        return False
    return True


@contextmanager
def scripts_of(mutant: Mutant) -> Iterator[Path]:
    """A folder with the package's scripts and the mutant in the place of one of them."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        for file, source in package_scripts().items():
            text = mutant.source if file == f"{mutant.script}.lua" else source
            Path(name, file).write_text(text, encoding="utf-8", newline="\n")
        yield Path(name)


def _said_otherwise(transitions: Sequence[Transition]) -> Iterator[Transition]:
    """The same claims with a priority that is clamped to the same tier."""
    for one in transitions:
        args = one.operation.args
        if one.operation.op == "claim" and args["min_priority"] == 0:
            yield replace(one, operation=replace(one.operation, args={**args, "min_priority": -3}))


# Put before a script, it counts what the script asks of the server: the commands, and the elements of their replies.
COUNTING = """\
local redis = (function(real)
  local function counted(reply)
    real.call('INCRBY', 'cost', 1 + (type(reply) == 'table' and #reply or 0))
    return reply
  end
  return {
    call = function(...) return counted(real.call(...)) end,
    pcall = function(...) return counted(real.pcall(...)) end,
    error_reply = real.error_reply,
  }
end)(redis)
"""


class Hunter:
    """Kills mutants, one after the other, on fakeredis and on one real server."""

    def __init__(self, server: BaseServer) -> None:
        self.fake = FakeHost()
        self.server = server
        self.costs: dict[str, int] = {}  # of the scripts as they are
        self.cases = [*CASES, *OF_SCRIPTS]
        self.transitions = [one for scope in SCOPES_OF_ALL for one in collect(scope, whole=False).found]
        self.transitions += list(_said_otherwise(self.transitions))

    def kill(self, mutant: Mutant) -> str:
        """What killed it, as ``stage: which``; empty if it lives."""
        stages = (
            self._by_cases,
            self._by_transitions,
            self._by_lint,
            self._by_cost,
            self._by_machine,
            self._by_server,
        )
        with scripts_of(mutant) as folder:
            for stage in stages:
                try:
                    with watched(SECONDS) as hangs:
                        killer = stage(mutant, folder)
                except BaseException:  # whatever the test framework makes of it
                    if not hangs:
                        raise
                    self.fake = FakeHost()  # what was interrupted is not used again
                    return "hang: it never ends"
                if killer:
                    return killer
        return ""

    def _by_cases(self, mutant: Mutant, folder: Path) -> str:
        witness = Scripts(self.fake, LuaFiles(folder))
        for case in self.cases:
            if replay(case.operations, [witness]) is not None:
                # What killed one kills its neighbours: it is tried first the next time.
                self.cases.remove(case)
                self.cases.insert(0, case)
                return f"case: {case.id}"
        return ""

    def _of(self, mutant: Mutant) -> list[Transition]:
        return [one for one in self.transitions if one.operation.op == mutant.script]

    def _by_transitions(self, mutant: Mutant, folder: Path) -> str:
        found = next(Executor(self.fake, LuaFiles(folder)).run(self._of(mutant)), None)
        return "transition" if found is not None else ""

    def _by_cost(self, mutant: Mutant, folder: Path) -> str:
        if mutant.script not in self.costs:
            right = replace(mutant, source=package_scripts()[f"{mutant.script}.lua"])
            self.costs[mutant.script] = self._cost(right)
        more = self._cost(mutant) - self.costs[mutant.script]
        return f"cost: {more} commands and elements more" if more > 0 else ""

    def _cost(self, mutant: Mutant) -> int:
        """The commands and elements of all its transitions, on the server."""
        total = 0
        with scripts_of(replace(mutant, source=COUNTING + mutant.source)) as folder:
            executor = Executor(self.server, LuaFiles(folder))
            for _ in executor.called(self._of(mutant)):
                total += int(executor.client.get("cost") or 0)
        return total

    def _by_machine(self, mutant: Mutant, folder: Path) -> str:
        witness = Scripts(self.fake, LuaFiles(folder))
        found = campaign([witness], OPERATIONS, Tally(), shorten=False)
        return f"machine: {found.rules[0].split(':')[0]}" if found is not None else ""

    def _by_lint(self, mutant: Mutant, folder: Path) -> str:
        found = lint(mutant.script, mutant.source)
        return f"lint: {found[0].rule}" if found else ""

    def _by_server(self, mutant: Mutant, folder: Path) -> str:
        witness = Scripts(self.server, LuaFiles(folder))
        for case in self.cases:  # it has a clock of its own, and Lua of its own
            if replay(case.operations, [witness]) is not None:
                return f"server: {case.id}"
        for name in ON_A_SERVER:
            if _convicts(CHECKS[name], self.server, folder):
                return f"server: {name}"
        return ""


def _convicts(check: Callable[[Rig], None], server: BaseServer, folder: Path) -> bool:
    prepare(server)
    rig = Rig(server, caller(server, LuaFiles(folder), None))
    server.clock.prefixes = [rig.prefix]
    try:
        check(rig)
    except (Fault, AssertionError):
        return True
    except pytest.skip.Exception as error:
        raise RuntimeError(f"the server cannot show it: {error}") from error
    finally:
        rig.close()
    return False
