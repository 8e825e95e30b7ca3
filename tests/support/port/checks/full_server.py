"""E5-1: a server at maxmemory refuses publishes, and can be drained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import redis

from model.notation import read_trace
from model.operation import PREFIX, Operation
from tests.support.port.checks.rig import NotAsked, Rig, refused
from tests.support.trial import Divergence, Trial


@dataclass(frozen=True)
class Situation:
    """What is done before the server is full, and what then; ``needs`` the port must declare."""

    before: str
    full: str
    needs: str = ""


SITUATIONS = (
    # Each operation, and a drain to the last message.
    Situation(
        """
        1000  publish group="a" payload="1"
        1000  publish group="a" payload="2"
        1000  publish group="b" payload="1" priority=1
        1000  publish group="b" payload="2"
        1000  publish group="c" payload="1" priority=4
        1000  claim token="A" visibility_ms=9000
        """,
        """
        1000  publish group="a" payload="3"
        1000  publish group="new" payload="1"
        1000  claim token="B" visibility_ms=500
        1400  extend group="b" token="B" visibility_ms=500
        1500  nack group="a" token="A"
        1500  claim token="C"
        1500  ack group="a" token="C"
        1500  claim token="D"
        1600  nack group="c" token="D" delay_ms=300
        1600  claim token="E"
        1600  ack group="a" token="E"
        2000  claim token="F"
        2000  claim token="G"
        2000  ack group="c" token="F"
        2000  ack group="b" token="G"
        2000  claim token="F"
        2000  ack group="c" token="F"
        2000  ack group="b" token="F"
        40000 claim token="H"
        40000 ack group="b" token="H"
        40000 claim token="H"
        """,
    ),
    # A page of locked groups to be moved out of the way, then a free one; then none.
    Situation(
        """
        1000  crowd size=9 tier=0 score_ms=0 visibility_ms=30000 messages=1
        1000  publish group="free" payload="m"
        """,
        """
        1000  claim token="A"
        1000  claim token="B"
        1000  ack group="free" token="A"
        31001 claim token="B"
        31001 ack group="crowd0-00" token="B"
        """,
        needs="window-repair",
    ),
    # Stale entries to be removed.
    Situation(
        """
        1000  crowd size=9 tier=2 score_ms=0 visibility_ms=0 messages=0
        1000  publish group="live" payload="m" priority=2
        """,
        """
        1000  claim token="A"
        1000  ack group="live" token="A"
        """,
        needs="window-repair",
    ),
    # A lost field to be written back.
    Situation(
        """
        1000  publish group="a" payload="1" priority=2
        1000  publish group="a" payload="2" priority=2
        1000  claim token="A"
        1000  drop-prio group="a"
        """,
        """
        1000  ack group="a" token="A"
        1000  claim token="B" min_priority=2
        1000  nack group="a" token="B"
        """,
        needs="tier-recovery",
    ),
)


def check_full_server(rig: Rig) -> None:
    """In each situation every operation but publish does what the model does; publish is refused."""
    for situation in SITUATIONS:
        if not situation.needs or rig.has(situation.needs):
            _try(rig, situation)


def _try(rig: Rig, situation: Situation) -> None:
    before, full = (_operations(rig, text) for text in (situation.before, situation.full))
    trial = Trial([rig.port], before[0].time_ms, [PREFIX])
    for operation in before:
        trial.do(operation)
    with _full(rig):
        for operation in full:
            if operation.op == "publish":
                _publish(rig, operation)
                continue
            try:
                trial.do(operation)
            except Divergence as divergence:
                note = f"the server is full from step {len(before) + 1} on: publish is refused, and nothing else"
                failure = replace(divergence.failure, report=f"{note}\n\n{divergence.report}")
                raise Divergence(failure, divergence.operations, divergence.witness) from None


def _operations(rig: Rig, text: str) -> list[Operation]:
    operations = [rig.as_asked(operation) for operation, _ in read_trace(text.splitlines())]
    return [operation for operation in operations if operation.op != "extend" or rig.has("extend")]


def _publish(rig: Rig, operation: Operation) -> None:
    rig.lines.clear()
    before = rig.state()
    rig.said("the server is full")
    reply = rig.by_port(operation.op, **operation.args)
    rig.expect(refused(reply), "a full server takes a publish")
    rows = rig.port.difference(before, rig.state())
    rig.expect(not rows, f"a publish that a full server refuses has written something: {'; '.join(rows)}")


@contextmanager
def _full(rig: Rig) -> Iterator[None]:
    """The server is at maxmemory and evicts nothing; whatever comes, it is restored."""
    try:
        before = {name: rig.admin.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
        rig.admin.config_set("maxmemory-policy", "noeviction")
        rig.admin.config_set("maxmemory", 1)
    except (redis.RedisError, KeyError) as error:
        raise NotAsked(f"maxmemory cannot be set on this server: {error}") from error
    try:
        yield
    finally:
        for name, value in before.items():
            rig.admin.config_set(name, value)
