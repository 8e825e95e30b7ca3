"""The evidence that a mutant changes nothing: it agrees wherever its script was called in two large searches.

The transitions of the default scope of the exploration, and the calls of a long run of the machine: each is one call
from known keys, so agreeing on all of them is having run all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from model.operation import Operation, Reply
from model.run import step
from model.scope import SCOPES
from model.state import Lock, State
from tests.exploration.transitions import Transition, collect
from tests.support.campaign import campaign
from tests.support.shifted import moved
from tests.support.trial import Tally
from tests.support.witness import Model

OPERATIONS = 100_000  # of the machine
INSTANT_MS = 1_700_000_000_000  # at which all its calls are tried, so that many can be tried at a time
SCOPE = SCOPES["default"]


class Recorder(Model):
    """The model as a witness, which keeps every call and the keys it found."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[State, Operation]] = []

    def do(self, operation: Operation) -> Reply:
        if operation.is_script:
            world = self.world.step(Operation("wait", operation.time_ms))[0]
            self.calls.append((world.state(operation.prefix), operation))
        return super().do(operation)


@lru_cache(maxsize=1)
def searched() -> Mapping[str, Sequence[Transition]]:
    """By script: every explored transition of it, and every call of it that the machine makes, once each."""
    recorder = Recorder()
    campaign([recorder], OPERATIONS, Tally())
    found: dict[str, list[Transition]] = {}
    for one in [*collect(SCOPE).found, *_called(recorder.calls)]:
        found.setdefault(one.operation.op, []).append(one)
    return found


def _called(calls: Iterable[tuple[State, Operation]]) -> Iterator[Transition]:
    """The calls as transitions, all moved to one instant; without those by a raw ARGV."""
    for state, operation in calls:
        by_ms = INSTANT_MS - state.now_ms
        if operation.argv is None and min(_instants(state, operation), default=-by_ms + 1) + by_ms > 0:
            before = _moved(state.expired(), by_ms)
            args = {name: value for name, value in moved(operation.args, by_ms).items() if name != "prefix"}
            called = Operation(operation.op, INSTANT_MS, args)
            after, reply = step(before, called)
            yield Transition(before, called, reply, after)


def _instants(state: State, operation: Operation) -> list[int]:
    scores = [score for tier in state.ready for score in tier.values()]
    deadlines = [lock.deadline_ms for lock in state.locks.values() if lock.deadline_ms is not None]
    own = [value for name in ("now_ms", "score_ms") if isinstance(value := operation.args.get(name), int)]
    return [instant for instant in (*scores, *deadlines, *own) if instant]


def _moved(state: State, by_ms: int) -> State:
    locks = {g: Lock(lock.value, lock.deadline_ms and lock.deadline_ms + by_ms) for g, lock in state.locks.items()}
    ready = tuple({group: score and score + by_ms for group, score in tier.items()} for tier in state.ready)
    return replace(state, now_ms=INSTANT_MS, locks=locks, ready=ready)
