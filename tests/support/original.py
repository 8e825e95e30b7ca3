"""The original design as a witness: its scripts as they were written, and its nack of several round trips."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import redis

from model.operation import Ok, Operation, Reply, Unsupported
from tests.support.designs import Design, load_nack
from tests.support.witness import Host, LuaFiles, Scripts, reply_of_error


class Original(Scripts):
    """Old clients: ``now`` from their own clock, which is right here; publish without the fifth argument; no extend."""

    def __init__(self, host: Host, lua: LuaFiles, design: Design) -> None:
        super().__init__(host, lua)
        self.name = f"{design.name}/{host.name}"
        self._nack = load_nack(design)

    def call(self, operation: Operation) -> Reply:
        if operation.op == "nack" and operation.argv is None:
            try:
                for _ in (steps := self.nack(operation)):
                    pass
            except redis.RedisError as error:
                return reply_of_error(error, "nack")
            return Ok(steps.reply)
        if operation.op == "extend" or operation.argv is not None:
            return Unsupported("the original has no extend, and its callers send no malformed ARGV")
        reply = super().call(of_old_client(operation))
        # Its publish answers 1 whatever the length; the reply is not compared.
        return Ok(int(self.client.llen(_list(operation)))) if operation.op == "publish" and reply == Ok(1) else reply

    def nack(self, operation: Operation) -> Steps:
        """The nack as a sequence of round trips, so that others can come between."""
        now_ms, delay_ms = operation["now_ms"], operation["delay_ms"]
        now_ms = operation.time_ms if now_ms is None else now_ms
        group, token = operation["group"], operation["token"]
        return Steps(self._nack(self.client, operation.prefix, group, token, now_ms, delay_ms))


class Steps:
    """A nack under way: iterate to go from one round trip to the next; ``reply`` is there at the end."""

    def __init__(self, steps: Generator[str, None, int]) -> None:
        self._steps = steps
        self.reply = 0

    def __iter__(self) -> Generator[str, None, None]:
        self.reply = yield from self._steps


def of_old_client(operation: Operation) -> Operation:
    """The operation as old clients ask for it: with their own clock, and without the score of a new group."""
    argv = list(operation.to_argv())
    if operation.op == "publish":
        del argv[4:]
    at = {"claim": 1, "ack": 3}.get(operation.op)
    if at is not None and not argv[at]:
        argv[at] = b"%d" % operation.time_ms
    return Operation(operation.op, operation.time_ms, argv=tuple(argv))


def _list(operation: Operation) -> Any:
    group = operation["group"]
    assert isinstance(group, bytes)
    return operation.prefix + b":q:" + group
