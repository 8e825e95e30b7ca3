"""Shrinks a failing trace to a shortest one, operation by operation.

An operation carries its own time and names what it touches, so any part of a trace is a trace, and one can be left
out without generating the rest anew: a few hundred replays on the one witness that failed, seconds in all. The model
judges every candidate afresh, so what remains is a real divergence, whatever was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from model.operation import DEFAULTS, PREFIX, Delivery, Ok, Operation, Value
from model.run import World
from tests.support.trial import Divergence

Trace = list[Operation]
REPLAYS = 3_000
SIMPLER: dict[str, tuple[Value, ...]] = {
    "visibility_ms": (1_000,),
    "delay_ms": (0, 1_000),
    "payload": (b"",),
    "size": (1, 2, 3, 9),
    "tier": (0,),
    "priority": (0, 1),
    "candidates": (8, 1),
    "score_ms": (0,),
}


def shrink(found: Divergence, fails: Callable[[Sequence[Operation]], Divergence | None]) -> Divergence:
    """The divergence of a shortest trace found; ``fails`` replays a trace and says how it diverges, if it does."""
    best = found
    replays = 0

    def better(candidate: Trace) -> bool:
        following = _following(candidate)
        return fails_too(candidate) or (following != candidate and fails_too(following))

    def fails_too(candidate: Trace) -> bool:
        nonlocal best, replays
        replays += 1
        divergence = fails(candidate) if replays <= REPLAYS else None
        if divergence is None:
            return False
        best = divergence  # its trace ends at the divergence, which may be earlier than before
        return True

    while replays < REPLAYS:
        before = best
        for passes in (_shorter, _simpler):
            _descend(lambda passes=passes: passes(best.operations), better)  # type: ignore[misc]
        if best is before:
            break
    return best


def _descend(candidates: Callable[[], Iterator[Trace]], better: Callable[[Trace], bool]) -> None:
    """Takes every better candidate and starts anew from it, until none is."""
    while any(better(candidate) for candidate in candidates()):
        pass


def _following(trace: Trace) -> Trace:
    """With every settlement on the group that the claim of its token leases in this trace."""
    world, result = World(), Trace()
    leased: dict[tuple[bytes, Value], bytes] = {}
    for operation in trace:
        if operation.op in ("ack", "nack", "extend") and operation.argv is None:
            group = leased.get((operation.prefix, operation["token"]))
            operation = operation if group is None else _with(operation, "group", group)
        world, reply = world.step(operation)
        result.append(operation)
        if operation.op == "claim" and isinstance(reply, Ok) and isinstance(reply.value, Delivery):
            leased[operation.prefix, operation["token"]] = reply.value.group
    return result


def _shorter(trace: Sequence[Operation]) -> Iterator[Trace]:
    """With a run of operations left out, long runs first, late ones first; the last operation stays."""
    size = max(1, len(trace) // 2)
    while size:
        for start in range(len(trace) - 1 - size, -1, -1):
            yield [*trace[:start], *trace[start + size :]]
        size //= 2


def _simpler(trace: Sequence[Operation]) -> Iterator[Trace]:
    """With less time, an argument at its default, or plainer names; each only when it changes something."""
    for prefix in {operation.prefix for operation in trace if operation.argv is None} - {PREFIX}:
        yield [_with(op, "prefix", PREFIX) if op.argv is None and op.prefix == prefix else op for op in trace]
    for at in range(len(trace)):
        # The time between this operation and the one before it: none, or a little.
        gap_ms = trace[at].time_ms - (trace[at - 1].time_ms if at else 1_000)
        for shorter_ms in (0, 1, gap_ms // 1_000 * 1_000):
            if gap_ms > shorter_ms:
                yield [*trace[:at], *(_earlier(op, gap_ms - shorter_ms) for op in trace[at:])]
    for name, plain in (("group", (b"a", b"b", b"c")), ("token", (b"t1", b"t2", b"t3"))):
        yield from _renamed(trace, name, plain)
    for at, operation in enumerate(trace):
        for name, value in operation.args.items():
            choices = (*((DEFAULTS[name],) if name in DEFAULTS and name != "prefix" else ()), *SIMPLER.get(name, ()))
            for simple in choices[: choices.index(value) if value in choices else None]:
                yield [*trace[:at], _with(operation, name, simple), *trace[at + 1 :]]


def _renamed(trace: Sequence[Operation], name: str, plain: Sequence[bytes]) -> Iterator[Trace]:
    """With the n-th name that appears turned into the n-th plain one."""
    seen: list[Value] = []
    for operation in trace:
        value = operation.args.get(name)
        if value is not None and value not in seen:
            seen.append(value)
    for number, value in enumerate(seen[: len(plain)]):
        if value != plain[number] and plain[number] not in seen:
            yield [_with(op, name, plain[number]) if op.args.get(name) == value else op for op in trace]


def _with(operation: Operation, name: str, value: Value) -> Operation:
    return replace(operation, args={**operation.args, name: value})


def _earlier(operation: Operation, by_ms: int) -> Operation:
    """The same so much earlier, instants among its arguments included."""
    args = {
        name: max(0, value - by_ms) if name in ("now_ms", "score_ms") and isinstance(value, int) and value else value
        for name, value in operation.args.items()
    }
    return replace(operation, time_ms=operation.time_ms - by_ms, args=args)
