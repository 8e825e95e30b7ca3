"""The level ``core``: the original design as it was written, judged without what it does otherwise everywhere."""

from __future__ import annotations

from dataclasses import replace

from model.notation import difference
from model.operation import Ok, Operation, Reply
from model.state import PARKED, Lock, State
from tests.support.witness import agree

LEVELS = ("core", "full")


def agrees(level: str, operation: Operation, expected: Reply, got: Reply) -> bool:
    """Whether the reply is the one expected; at ``core`` those of publish and nack are not compared."""
    if level == "core" and operation.op in ("publish", "nack") and isinstance(expected, Ok):
        return isinstance(got, Ok)
    return agree(expected, got)


def differing_keys(level: str, expected: State, got: State) -> list[str]:
    """The keys that differ, a line each."""
    return difference(*((_core(expected, got), _core(got, got)) if level == "core" else (expected, got)))


def _core(state: State, got: State) -> State:
    """Without the mark of a park, and without the field of a group that is gone."""
    locks = {
        group: Lock(got.locks[group].value, lock.deadline_ms) if lock.value == PARKED and group in got.locks else lock
        for group, lock in state.locks.items()
    }
    return replace(state, locks=locks, prio={g: value for g, value in state.prio.items() if g in state.queues})
