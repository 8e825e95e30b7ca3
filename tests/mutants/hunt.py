"""The hunt, in as many processes as there are cores: first all ways to kill, then the evidence for those that live."""

from __future__ import annotations

import atexit
import multiprocessing
import os
from collections.abc import Callable, Sequence

from tests.exploration.refine import Executor
from tests.mutants.evidence import searched
from tests.mutants.generate import Mutant
from tests.mutants.kill import Hunter, scripts_of
from tests.support.running import BaseServer
from tests.support.servers import resolve
from tests.support.witness import LuaFiles

_server: list[BaseServer] = []  # of this process: one, which ends with it
_hunter: list[Hunter] = []


def hunt(
    mutants: Sequence[Mutant], server: str, told: Callable[[Mutant, str], None]
) -> tuple[dict[str, str], dict[str, int]]:
    """What killed each (empty: nothing), and of those that live in how many calls they agree with the model.

    ``told`` is called with each mutant as it is done.
    """
    killed_by: dict[str, str] = {}
    workers = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("spawn").Pool(workers, _start, (server,)) as pool:
        for mutant, killer in zip(mutants, pool.imap(_kill, mutants), strict=True):
            killed_by[mutant.id] = killer
            told(mutant, killer or "lives so far")
    alive = [mutant for mutant in mutants if not killed_by[mutant.id]]
    agreed: dict[str, int] = {}
    if alive:
        searched()  # once, before the processes that share it begin
        with multiprocessing.get_context("fork").Pool(workers, _serve, (server,)) as pool:
            for mutant, (killer, count) in zip(alive, pool.imap(_agrees, alive), strict=True):
                killed_by[mutant.id], agreed[mutant.id] = killer, count
                told(mutant, killer or f"agrees in {count:,} calls")
    return killed_by, {name: count for name, count in agreed.items() if not killed_by[name]}


def _serve(server: str) -> None:
    host = resolve(server).start()
    atexit.register(host.stop)
    _server.append(host)


def _start(server: str) -> None:
    _serve(server)
    _hunter.append(Hunter(_server[0]))


def _kill(mutant: Mutant) -> str:
    return _hunter[0].kill(mutant)


def _agrees(mutant: Mutant) -> tuple[str, int]:
    calls = searched()[mutant.script]
    with scripts_of(mutant) as folder:
        for disagreement in Executor(_server[0], LuaFiles(folder)).run(calls):
            return f"search: {disagreement.transition.operation.op}", 0
    return "", len(calls)
