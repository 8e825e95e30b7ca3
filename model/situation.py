"""The situations of an exploration: the keys, what each worker believes, and all that can happen next.

A situation is canonical: now is always ``NOW_MS``, and instants count from it; scores too far back to be told from
``now`` by any clock of the scope keep only their order; messages are numbered by their place; workers have no names.
Two situations that no script can tell apart are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from model.operation import Operation, Value
from model.scope import Scope
from model.state import PARKED, TIERS, Lock, State

NOW_MS = 1_000
GONE = b"x"  # the token of a lease that nobody remembers

Key = tuple[object, ...]
Args = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker believes: its group, and until when it holds it (None: it knows that it does not any more).

    ``pending``: of an operation of several round trips, the delay in ms and the replies it got so far.
    """

    group: bytes = b""  # empty: it is idle
    deadline_ms: int | None = None
    pending: tuple[object, ...] = ()

    @property
    def rank(self) -> tuple[object, ...]:
        """Orders the workers of a situation."""
        return self.group, self.deadline_ms or 0, tuple(map(repr, self.pending))


@dataclass(frozen=True, slots=True)
class Situation:
    """The keys at ``NOW_MS``, the workers, and how many messages and foreign writes are still to come.

    ``spoilt``: the groups whose lock a foreigner wrote to; who holds them is not the scripts' doing any more.
    """

    state: State
    workers: tuple[Worker, ...]
    messages: int
    foreign: int
    spoilt: frozenset[bytes] = frozenset()

    def key(self) -> Key:
        """The same for situations that are equal."""
        return (*key_of(self.state), self.workers, self.messages, self.foreign, self.spoilt)

    def told(self, number: int, worker: Worker) -> Situation:
        """With another belief of one worker."""
        return replace(self, workers=(*self.workers[:number], worker, *self.workers[number + 1 :]))


def key_of(state: State) -> Key:
    """The same for states whose keys are equal."""
    return (
        tuple(sorted(state.queues.items())),
        tuple(sorted((group, lock.value, lock.deadline_ms or -1) for group, lock in state.locks.items())),
        tuple(tuple(sorted(tier.items())) for tier in state.ready),
        tuple(sorted(state.prio.items())),
    )


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that happens: an operation of ``worker`` or, without one, of a producer or a foreigner.

    Without an operation: ``time`` passes, a worker dies (``die``) or does its next round trip (``go-on``).
    """

    name: str
    worker: int = -1
    operation: Operation | None = None


def start(scope: Scope) -> Situation:
    """An empty queue."""
    return Situation(State(NOW_MS), (Worker(),) * scope.workers, scope.messages, scope.foreign)


def token(worker: int) -> bytes:
    """The token of a worker's lease."""
    return b"t%d" % worker


def actions(situation: Situation, scope: Scope) -> Iterator[Action]:
    """Everything that can happen next."""
    groups = [b"%c" % (ord("a") + number) for number in range(scope.groups)]
    clocks = [None, NOW_MS + scope.skew_ms, NOW_MS - scope.skew_ms] if scope.skew_ms else [None]
    yield Action("time")
    if situation.messages:
        scores = [0, None] if scope.arrival else [0]
        for group in groups:
            payload = b"%d" % len(situation.state.messages(group) or ())
            for priority in range(scope.tiers):
                for score in scores if group not in situation.state.prio else [0]:  # it is of a new group only
                    args: Args = {"group": group, "payload": payload, "priority": priority, "score_ms": score}
                    yield Action("publish", operation=Operation("publish", NOW_MS, args))
    for number, worker in enumerate(situation.workers):
        if worker.pending:
            yield Action("go-on", number)
        elif worker.group:
            yield Action("die", number)
            for now_ms in clocks:
                yield from _settlements(number, worker.group, now_ms, scope)
        elif number == 0 or situation.workers[number - 1].group:  # idle workers are all alike
            for now_ms in clocks:
                for priority in range(scope.tiers):
                    yield Action("claim", number, _claim(number, now_ms, priority, scope))
    if situation.foreign:
        yield from _foreign(situation.state, groups)


def _claim(number: int, now_ms: int | None, min_priority: int, scope: Scope) -> Operation:
    lease: Args = {"token": token(number), "visibility_ms": scope.visibility_ms, "now_ms": now_ms}
    return Operation("claim", NOW_MS, {**lease, "candidates": scope.candidates, "min_priority": min_priority})


def _settlements(number: int, group: bytes, now_ms: int | None, scope: Scope) -> Iterator[Action]:
    held: Args = {"group": group, "token": token(number), "now_ms": now_ms}
    yield Action("ack", number, Operation("ack", NOW_MS, held))
    yield Action("nack", number, Operation("nack", NOW_MS, {**held, "delay_ms": 0}))
    yield Action("nack", number, Operation("nack", NOW_MS, {**held, "delay_ms": scope.delay_ms}))
    yield Action("extend", number, Operation("extend", NOW_MS, {**held, "visibility_ms": scope.visibility_ms}))


def _foreign(state: State, groups: list[bytes]) -> Iterator[Action]:
    for group in groups:
        there = {
            "drop-list": group in state.queues,
            "drop-lock": group in state.locks,
            "persist-lock": group in state.locks,
            "drop-prio": group in state.prio,
        }
        for op, possible in there.items():
            if possible:
                yield Action("foreign", operation=Operation(op, NOW_MS, {"group": group}))
        for tier in range(TIERS):
            if group in state.ready[tier]:
                yield Action("foreign", operation=Operation("drop-entry", NOW_MS, {"group": group, "tier": tier}))


def died(situation: Situation, number: int) -> Situation:
    """A worker is gone, and with it the token of its lease."""
    locks = {
        group: replace(lock, value=GONE) if lock.value == token(number) else lock
        for group, lock in situation.state.locks.items()
    }
    return replace(situation, state=replace(situation.state, locks=locks)).told(number, Worker())


def later(situation: Situation) -> Situation:
    """One millisecond later: everything stored moves one back, for now stands still."""
    state = situation.state
    locks = {
        group: Lock(lock.value, None if lock.deadline_ms is None else lock.deadline_ms - 1)
        for group, lock in state.locks.items()
        if lock.deadline_ms is None or lock.deadline_ms > NOW_MS
    }
    ready = tuple({group: score - 1 if score else 0 for group, score in tier.items()} for tier in state.ready)
    workers = tuple(
        worker if worker.deadline_ms is None else replace(worker, deadline_ms=_sooner(worker.deadline_ms))
        for worker in situation.workers
    )
    return replace(situation, state=replace(state, locks=locks, ready=ready), workers=workers)


def _sooner(deadline_ms: int) -> int | None:
    return deadline_ms - 1 if deadline_ms > NOW_MS else None


def canonical(situation: Situation, scope: Scope) -> tuple[Situation, list[int]]:
    """The situation under its one name, and which of the workers before is each of those in it."""
    state, workers = situation.state, situation.workers
    # Of workers who believe the same, the one whose token a lock holds comes last.
    holders = {lock.value for lock in state.locks.values()}
    order = sorted(range(len(workers)), key=lambda n: (not workers[n].group, workers[n].rank, token(n) in holders))
    names = {token(old): token(new) for new, old in enumerate(order) if workers[old].group}
    names[PARKED] = PARKED
    floor = NOW_MS - scope.skew_ms
    past = sorted({score for tier in state.ready for score in tier.values() if 0 < score < floor}, reverse=True)
    moved = {score: floor - 1 - place for place, score in enumerate(past)}
    numbered = {g: m and tuple(b"%d" % place for place in range(len(m))) for g, m in state.queues.items()}
    named = {g: Lock(names.get(lock.value or b"", GONE), lock.deadline_ms) for g, lock in state.locks.items()}
    ready = tuple({g: moved.get(score, score) for g, score in tier.items()} for tier in state.ready)
    return (
        replace(
            situation,
            state=State(NOW_MS, numbered, named, ready, state.prio),
            workers=tuple(workers[n] for n in order),
        ),
        order,
    )
