"""What every transition of an exploration must keep, and what an exploration must have seen.

``broken`` is about one transition: who may hold, who may settle, what may happen to the messages, what a claim must
find. What must hold in a state by itself is ``invariants.of_state``; that everything can be drained, ``left``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from model import invariants
from model.operation import Delivery, Ok, Operation, Reply
from model.situation import NOW_MS, Situation, Worker
from model.state import PARKED, State

Step = Callable[[State, Operation], tuple[State, Reply]]

LATER_MS = 1_000_000  # when every lease and park of an exploration is over
SOMETIMES = (
    "a lease ended and its group was claimed again",
    "a lease that was over was refused, while another held the group",
    "a lease was renewed",
    "a park ended and its group was claimed",
    "two groups were in flight at once",
    "a tie was broken",
    "a due group was still locked, in the millisecond of its deadline",
    "a repair happened",
    "a claim found nothing, though messages were there",
    "the last group was drained",
)
IF_FOREIGN = (
    "a stale entry was removed",
    "a lost field came back",
    "a lost entry came back",
    "a lock without TTL ended",
)


def delivery(reply: Reply) -> Delivery | None:
    """What a claim delivered."""
    return reply.value if isinstance(reply, Ok) and isinstance(reply.value, Delivery) else None


def believes(worker: Worker, operation: Operation, reply: Reply) -> Worker:
    """What a worker believes after the reply."""
    if operation.op == "claim":
        got, visibility_ms = delivery(reply), operation["visibility_ms"]
        assert isinstance(visibility_ms, int)
        return worker if got is None else Worker(got.group, NOW_MS + visibility_ms)
    until_ms = None
    if operation.op == "extend" and reply == Ok(1):
        visibility_ms = operation["visibility_ms"]
        assert isinstance(visibility_ms, int)
        until_ms = NOW_MS + visibility_ms
    return Worker(worker.group, until_ms)


def broken(before: Situation, number: int, operation: Operation, reply: Reply, after: State) -> Iterator[str]:
    """The promises that this operation of worker ``number`` (-1: of a producer) does not keep."""
    worker = before.workers[number] if number >= 0 else Worker()
    got = delivery(reply)
    if operation.op == "claim":
        if got is None:
            yield from _not_found(before.state, operation)
        elif got.group not in before.spoilt and _holders(before, got.group):
            yield f"EXCLUSIVE: {_name(got.group)} is claimed while another lease of it lives"
        if got is not None and got.payload != (before.state.messages(got.group) or (b"",))[0]:
            yield f"FIFO: {_name(got.group)} delivers another message than its oldest"
    elif number >= 0 and worker.group not in before.spoilt:
        if reply == Ok(1) and worker.deadline_ms is None:
            yield f"FENCE: {operation.op} is accepted from a lease of {_name(worker.group)} that is over or settled"
        if reply == Ok(0) and worker.deadline_ms is not None:
            yield f"LEASE: {operation.op} is refused to the lease of {_name(worker.group)}, which lives"
    yield from _messages(before.state, operation, reply, after)


def _holders(situation: Situation, group: bytes) -> list[Worker]:
    return [worker for worker in situation.workers if worker.group == group and worker.deadline_ms is not None]


def _not_found(state: State, operation: Operation) -> Iterator[str]:
    """A claim answers nil only if no group is due, free and has a message."""
    now_ms, first = operation["now_ms"], operation["min_priority"]
    assert isinstance(first, int)
    limit_ms = state.now_ms if now_ms is None else now_ms
    assert isinstance(limit_ms, int)
    for tier in range(first, len(state.ready)):
        for group, score in sorted(state.ready[tier].items()):
            lock = state.lock(group)
            free = lock is None or lock.deadline_ms is None
            if score <= limit_ms and free and state.messages(group):
                yield f"CLAIMABLE: a claim answers nil though {_name(group)} is due and free in tier {tier}"


def _messages(before: State, operation: Operation, reply: Reply, after: State) -> Iterator[str]:
    """Nothing is lost, doubled or moved: only publish adds, at the tail, and only an accepted ack removes, the head."""
    want = dict(before.queues)
    if operation.op == "publish" and isinstance(reply, Ok):
        group, payload = operation["group"], operation["payload"]
        assert isinstance(group, bytes)
        assert isinstance(payload, bytes)
        want[group] = (*(want.get(group) or ()), payload)
        if reply.value != len(want[group] or ()):
            yield f"LOST: publish answers {reply.value}, {_name(group)} has {len(want[group] or ())} messages"
    if operation.op == "ack" and reply == Ok(1):
        group = operation["group"]
        assert isinstance(group, bytes)
        want[group] = (want.get(group) or ())[1:]
    for group in want.keys() | after.queues.keys():
        if (want.get(group) or ()) != (after.queues.get(group) or ()):
            yield f"LOST: {operation.op} leaves {_name(group)} with {after.queues.get(group)}, not {want.get(group)}"


def _name(group: bytes) -> str:
    return f"group {group.decode('latin-1')!r}"


def drained(step: Step, state: State, claims: int) -> State:
    """The state after time, claims and acks: as many claims as are needed, but not more than ``claims``."""
    state = replace(state, now_ms=LATER_MS).expired()
    for _ in range(claims):
        state, reply = step(state, Operation("claim", state.now_ms, {"token": b"drain", "visibility_ms": 1}))
        got = delivery(reply)
        if got is None:
            break
        state, _ = step(state, Operation("ack", state.now_ms, {"group": got.group, "token": b"drain"}))
        state = state.at(state.now_ms + 2)  # so that an entry which the claim moved and the ack did not find is due
    return state


def left(state: State, *, foreign: bool) -> list[str]:
    """What a drained queue may not hold: anything, unless something foreign wrote.

    Then a list without an entry, and a field without an entry, wait for a publish, a settlement or an audit; and a
    lock without a TTL outlasts a group that is gone.
    """
    indexed = {group for tier in state.ready for group in tier}
    stuck = {group for group in state.queues if not foreign or group in indexed}
    locks = {group for group, lock in state.locks.items() if not (foreign and lock.deadline_ms is None)}
    lone = set() if foreign else set(state.prio)
    if not (indexed or stuck or locks or lone):
        return []
    return [f"DRAINED: time, claims and acks leave {', '.join(sorted(map(_name, indexed | stuck | locks | lone)))}"]


def wrong(state: State, *, foreign: bool) -> list[str]:
    """What must not be in a state by itself. After a foreign write only the drain is judged."""
    return [] if foreign else invariants.of_state(state)


def noticed(before: Situation, number: int, operation: Operation, reply: Reply, after: State) -> Iterator[str]:
    """Which of ``SOMETIMES`` and ``IF_FOREIGN`` this transition shows."""
    state = before.state
    if operation.op == "publish":
        group = operation["group"]
        assert isinstance(group, bytes)
        if state.messages(group):
            if state.tier_of(group) is None:
                yield "a lost field came back"
            if state.tier_that_knows(group) is None:
                yield "a lost entry came back"
    elif operation.op == "claim":
        yield from _noticed_in_claim(before, reply, after)
    elif number >= 0 and reply == Ok(0):
        holder = state.lock(before.workers[number].group)
        if holder is not None and holder.value != PARKED:
            yield "a lease that was over was refused, while another held the group"
    elif operation.op == "extend":
        yield "a lease was renewed"
    elif operation.op == "ack" and state.queues and not after.queues:
        yield "the last group was drained"


def _noticed_in_claim(before: Situation, reply: Reply, after: State) -> Iterator[str]:
    state, got = before.state, delivery(reply)
    due = [(score, group) for tier in state.ready for group, score in tier.items() if score <= NOW_MS]
    locked = {group for _, group in due if (lock := state.lock(group)) is not None and lock.deadline_ms == NOW_MS}
    if locked:
        yield "a due group was still locked, in the millisecond of its deadline"
        if any(after.ready[tier].get(group, 0) > NOW_MS for group in locked for tier in range(len(after.ready))):
            yield "a repair happened"
    if sum(map(len, after.ready)) < sum(map(len, state.ready)):
        yield "a stale entry was removed"
    if got is None:
        if state.queues:
            yield "a claim found nothing, though messages were there"
        return
    if any(worker.group == got.group and worker.deadline_ms is None for worker in before.workers):
        yield "a lease ended and its group was claimed again"
    if got.group not in state.locks and any(state.ready[tier].get(got.group, 0) for tier in range(len(state.ready))):
        yield "a park ended and its group was claimed"
    if (lock := state.lock(got.group)) is not None and lock.deadline_ms is None:
        yield "a lock without TTL ended"
    if sum(lock.value != PARKED for lock in after.locks.values()) > 1:
        yield "two groups were in flight at once"
    scores = [score for score, group in due if state.lock(group) is None]
    if scores.count(min(scores, default=0)) > 1:
        yield "a tie was broken"
