"""Callers of the scripts: as a port would call them, as an old client does, and one that is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from model.operation import Ok, Operation, Reply
from tests.support.designs import Design, load_nack
from tests.support.original import Original
from tests.support.running import BaseServer
from tests.support.witness import LuaFiles, Scripts, reply_of_error


class TwoStep(Scripts):
    """The scripts, but for a nack that is no script."""

    def __init__(self, host: Any, lua: LuaFiles, design: Design) -> None:
        super().__init__(host, lua)
        self._nack = load_nack(design)

    def call(self, operation: Operation) -> Reply:
        if operation.op != "nack":
            return super().call(operation)
        arguments = (operation[name] for name in ("group", "token", "delay_ms"))
        group, token, delay_ms = arguments
        steps = self._nack(self.client, operation.prefix, group, token, operation.time_ms, delay_ms)
        try:
            while True:
                next(steps)
        except StopIteration as end:
            return Ok(end.value)
        except redis.RedisError as error:
            return reply_of_error(error, "nack")


class Interrupted:
    """A client before whose n-th command, counted from 0, something happens."""

    def __init__(self, client: Any, index: int, action: Callable[[], None]) -> None:
        self._client = client
        self._left = index
        self._action = action
        self.fired = False

    def execute_command(self, *args: Any) -> Any:
        """One command."""
        if self._left == 0:
            self.fired = True
            self._action()
        self._left -= 1
        return self._client.execute_command(*args)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


def caller(host: BaseServer, lua: LuaFiles, design: Design | None) -> Scripts:
    """A caller of the scripts, with the nack of the design where it has one."""
    if design is None or design.nack is None:
        return Scripts(host, lua)
    return (Original if design.name == "original" else TwoStep)(host, lua, design)
