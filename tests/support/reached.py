"""What a step of a trace reached: the situations in which each correction matters.

Seen from outside, by the states before and after and the reply, so that the same words serve the counts of a run,
the floors it must reach, and the explanation of a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from model import arguments
from model.operation import ARGV, Delivery, Error, Ok, Operation, Reply
from model.state import PARKED, TIERS, State

# The correction of the original design that each situation exercises (spec/errata.md).
CORRECTIONS: Mapping[str, str] = {
    "stale settle after the group was claimed again": "E1",
    "settle with the token of a parked group": "E2",
    "first page of the window all locked": "E3",
    "call on the boundary millisecond": "E4",
    "bad priority": "E6",
    "bad argument of claim": "E7",
    "tie broken": "E9",
    "retry at once": "E10",
    "new group scored by arrival": "E11",
    "stale entry in the window": "E12",
    "key of another type in the window": "E13",
    "lock without TTL in the window": "E14",
    "priority field lost or spoilt": "E16",
}


def reached(before: State, operation: Operation, reply: Reply, after: State) -> frozenset[str]:
    """The situations of one step; the state before is already at the operation's time."""
    return frozenset(_reached(before, operation, reply, after)) if operation.is_script else frozenset()


def _reached(before: State, operation: Operation, reply: Reply, after: State) -> Iterator[str]:
    if any(lock.value == PARKED for group, lock in before.locks.items() if before.lock(group)):
        yield "parked group seen"
    if any(end is not None and abs(end - before.now_ms) <= 1 for end in _deadlines(before)):
        yield "within 1 ms of a deadline"
    if isinstance(reply, Error) and reply.code == "REDISQ_BADARG":
        yield "bad priority" if "priority" in reply.arguments else "bad argument"
        if operation.op == "claim":
            yield "bad argument of claim"
        return
    argv = dict(zip(ARGV[operation.op], operation.to_argv(), strict=False))
    if operation.op == "claim":
        yield from _claim(before, argv, reply, after)
        return
    group = argv["group"]
    if before.messages(group) and before.tier_of(group) is None:
        yield "priority field lost or spoilt"
    if operation.op == "publish":
        if argv.get("score", b"0") != b"0" and not before.messages(group):
            yield "new group scored by arrival"
        return
    if reply == Ok(0):
        yield "stale settle"
        lock = before.lock(group)
        if lock is not None:
            yield (
                "settle with the token of a parked group"
                if lock.value == PARKED
                else "stale settle after the group was claimed again"
            )
    elif operation.op == "nack" and argv["delay"] == b"0":
        yield "retry at once"


def _deadlines(state: State) -> list[int | None]:
    return [lock.deadline_ms for lock in state.locks.values()]


def _claim(before: State, argv: Mapping[str, bytes], reply: Reply, after: State) -> Iterator[str]:
    yield "claim"
    claimed = reply.value.group if isinstance(reply, Ok) and isinstance(reply.value, Delivery) else None
    if claimed is not None:
        yield "claim returned a lease"
    now_ms, page = arguments.clock(argv["now"], before.now_ms), int(argv["K"])
    servable: list[int] = []
    for tier in range(arguments.tier(argv["min_priority"]), TIERS):
        window = before.window(tier, now_ms, below=False, skip=0, count=10_000)
        locks = [before.lock(group) for _, group in window]
        locked = [lock is not None and lock.deadline_ms is not None for lock in locks]
        if any(lock is not None and lock.deadline_ms is None for lock in locks):
            yield "lock without TTL in the window"
        if len(locked) > page and all(locked[: page + 1]):
            yield "first page of the window all locked"
        for (score, group), is_locked, lock in zip(window, locked, locks, strict=True):
            if lock is not None and lock.deadline_ms == before.now_ms == score:
                yield "call on the boundary millisecond"
            if before.messages(group) is None or (lock is not None and lock.value is None):
                yield "key of another type in the window"
            elif not before.messages(group) and not is_locked:
                yield "stale entry in the window"
            elif not is_locked and before.messages(group):
                servable.append(score)
    if claimed is not None and servable.count(min(servable, default=0)) > 1:
        yield "tie broken"
    moved = [
        group
        for tier in range(TIERS)
        for group in before.ready[tier]
        if group != claimed and after.ready[tier].get(group) != before.ready[tier][group]
    ]
    if moved:
        yield "repair"


# The shares that a run of the machine must reach: situation → (share, of what).
FLOORS: Mapping[str, tuple[float, str]] = {
    "claim returned a lease": (0.25, "claim"),
    "within 1 ms of a deadline": (0.05, "step"),
    "stale settle": (0.05, "step"),
    "repair": (0.02, "step"),
    "parked group seen": (0.05, "step"),
    "tie broken": (0.05, "step"),
}


def below_floors(counts: Counter[str]) -> list[str]:
    """The floors that a run stayed under, each as a sentence."""
    return [
        f"{situation}: {counts[situation]} of {counts[whole]} {whole}s, {share:.0%} must be reached"
        for situation, (share, whole) in FLOORS.items()
        if counts[situation] < share * counts[whole]
    ]
