"""What each lane does: decided by the seed alone, operation by operation, but for which lease it holds."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random

from model.operation import Delivery, Ok, Operation, Reply, Value

PREFIX = b"con:current"
GROUPS = (b"plain", b"nul\x00byte", b'quote"\\', b"line\r\nend", b"{brace}:q:x", b"\xff\xfe", b"a b", b"parked")
VISIBILITIES_MS = (80, 120, 200)
DELAYS_MS = (10, 40)
LONGEST_MS = 260
"""After this every lease and park that the plan asks for has ended."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call to be made; ``stall_ms`` holds an operation of several round trips up between two of them."""

    operation: Operation
    stall_ms: int = 0


@dataclass(frozen=True, slots=True)
class Nap:
    """Time in which the lane works, or is held up."""

    ms: int


Answer = tuple[Reply | None, bytes]
Plan = Generator[Call | Nap, Answer, None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a lane works."""

    seed: str
    operations: int
    groups: int = len(GROUPS)
    extends: bool = True
    slow: float = 0.08
    """How often it is held up beyond its lease."""
    stalls: float = 0.2
    """How often a nack is, between two of its round trips."""
    publishes: float = 0.35
    """How much of what it does is to publish."""
    nacks: float = 0.35
    """How many leases are given back; most others are acked."""
    work_ms: Sequence[int] = (0, 0, 1, 3, 15, 50)


def plan(lane: str, settings: Settings) -> Plan:
    """Yields what the lane does; takes the answer of each call: the reply, or None, and the token of a claim."""
    number, groups = 0, GROUPS[: settings.groups]
    while number < settings.operations:
        dice = Random(f"{settings.seed}/{lane}/{number}")
        number += 1
        if dice.random() < settings.publishes:
            payload = f"{lane}/{number}:".encode() + dice.randbytes(dice.choice((0, 3, 40)))
            args: dict[str, Value] = {"group": dice.choice(groups), "payload": payload, "priority": dice.randrange(5)}
            yield Call(_operation("publish", args))
            continue
        visibility_ms = dice.choice(VISIBILITIES_MS)
        args = {
            "token": f"{lane}/{number}".encode(),
            "visibility_ms": visibility_ms,
            "candidates": dice.choice((1, 2, 8, 99)),
            "min_priority": dice.choice((0, 0, 0, 2, 4)),
        }
        reply, token = yield Call(_operation("claim", args))
        if isinstance(reply, Ok) and isinstance(reply.value, Delivery):
            yield from _work(dice, reply.value.group, token, visibility_ms, settings)
        elif reply == Ok(None):
            yield Nap(2)


def _work(dice: Random, group: bytes, token: bytes, visibility_ms: int, settings: Settings) -> Plan:
    """What is done with a lease."""
    lease: dict[str, Value] = {"group": group, "token": token}
    late = dice.random() < settings.slow
    yield Nap(visibility_ms * 3 // 2 if late else dice.choice(settings.work_ms))
    if settings.extends and dice.random() < 0.15:
        yield Call(_operation("extend", {**lease, "visibility_ms": dice.choice(VISIBILITIES_MS)}))
        yield Nap(dice.choice(settings.work_ms))
    if (how := dice.random()) >= max(settings.nacks, 0.05):
        for _ in range(1 + (dice.random() < 0.1)):
            yield Call(_operation("ack", lease))
    elif how >= 0.05:  # else the lease is left to end by itself
        delay_ms = dice.choice((0, *DELAYS_MS))
        stall_ms = visibility_ms * 5 // 4 if dice.random() < settings.stalls else 0
        yield Call(_operation("nack", {**lease, "delay_ms": delay_ms}), stall_ms)
        if dice.random() < 0.2:  # a settled lease is dead
            yield Call(_operation("ack", lease))


def _operation(op: str, args: dict[str, Value]) -> Operation:
    return Operation(op, 0, {"prefix": PREFIX, **args})
