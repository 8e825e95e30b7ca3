"""The Python library as a witness: ``RedisTransport`` and ``AsyncRedisTransport`` over any host.

The library makes its own tokens, so a claim's token in the trace stands for the one that was made: settlements are
translated on the way in, locks on the way out. What its signatures cannot say is answered ``unsupported``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import redis
import redis.asyncio

from model.operation import Delivery, Error, Ok, Operation, Reply, Unsupported, Value
from model.state import State
from redisq import AsyncRedisTransport, InvalidArgument, Lease, RedisTransport
from redisq.keys import decode, encode
from redisq.scripts import SCRIPTS, Script
from tests.support.witness import Host, LuaFiles, OnHost, reply_of_error

Held = tuple[bytes, bytes, bytes]  # prefix, group, token of the trace
# What the library calls otherwise than the wire; a clock is one of two arguments.
WIRE_NAMES = {"visibility": ("px",), "candidates": ("K",), "clock": ("now", "score")}


class Inexpressible(Exception):
    """The library has no way to be asked this."""


class Library(OnHost):
    """One of the two transports; ``lua`` replaces the package's scripts."""

    def __init__(self, kind: str, host: Host, lua: LuaFiles | None = None) -> None:
        super().__init__(host, f"{kind}/{host.name}")
        self.kind = kind
        self.scripts = lua and {name: Script(name, lua.source[name], lua.sha[name]) for name in SCRIPTS}
        self.runner = asyncio.Runner() if kind == "async" else None
        self.library_client: Any = _async_client(host) if kind == "async" else host.client()
        self.queues: dict[tuple[bytes, Value, bool, bool], Any] = {}
        self.now_s = 0.0
        self.leases: dict[Held, Lease] = {}
        self.tokens: dict[bytes, bytes] = {}  # the library's → the trace's

    def reset(self, now_ms: int) -> None:
        super().reset(now_ms)
        self.leases.clear()
        self.tokens.clear()

    def close(self) -> None:
        """Lets go of an asyncio client and its loop."""
        if self.runner is not None:
            self.runner.run(self.library_client.aclose())
            self.runner.close()

    def call(self, operation: Operation) -> Reply:
        if operation.argv is not None:
            return Unsupported("a raw ARGV")
        try:
            return Ok(getattr(self, "_" + operation.op)(operation))
        except Inexpressible as error:
            return Unsupported(str(error))
        except InvalidArgument as error:
            return Error("REDISQ_BADARG", WIRE_NAMES.get(error.argument, (error.argument.removeprefix("lease."),)))
        except redis.RedisError as error:
            return reply_of_error(error, operation.op)

    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        states = super().read(prefixes)
        return {
            prefix: replace(
                state,
                locks={
                    group: lock if lock.value is None else replace(lock, value=self.tokens.get(lock.value, lock.value))
                    for group, lock in state.locks.items()
                },
            )
            for prefix, state in states.items()
        }

    # The five operations

    def _publish(self, operation: Operation) -> int:
        score_ms = self._instant(operation, "score_ms")
        queue = self._queue(operation, now_ms=score_ms, arrival=score_ms != 0)
        priority = self._number(operation, "priority")
        length: int = self._wait(
            queue.publish(_bytes(operation, "group"), _bytes(operation, "payload"), priority=priority)
        )
        return length

    def _claim(self, operation: Operation) -> Delivery | None:
        if _bytes(operation, "token") in (b"", b"parked"):
            raise Inexpressible("a token of the caller's own")
        queue = self._queue(operation, now_ms=self._instant(operation, "now_ms"))
        visibility = self._seconds(operation, "visibility_ms")
        lease = self._wait(queue.claim(visibility, min_priority=self._number(operation, "min_priority")))
        if lease is None:
            return None
        group, token = encode(lease.group), _bytes(operation, "token")
        self.leases[operation.prefix, group, token] = lease
        self.tokens[encode(lease.token)] = token
        return Delivery(group, lease.payload)

    def _ack(self, operation: Operation) -> int:
        queue = self._queue(operation, now_ms=self._instant(operation, "now_ms"))
        return int(self._wait(queue.ack(self._lease(operation))))

    def _nack(self, operation: Operation) -> int:
        queue = self._queue(operation, now_ms=self._instant(operation, "now_ms"))
        return int(self._wait(queue.nack(self._lease(operation), delay=self._seconds(operation, "delay_ms"))))

    def _extend(self, operation: Operation) -> int:
        queue = self._queue(operation, now_ms=self._instant(operation, "now_ms"))
        lease = self._lease(operation)
        renewed = self._wait(queue.extend(lease, visibility=self._seconds(operation, "visibility_ms")))
        if renewed is None:
            return 0
        self.leases[operation.prefix, encode(lease.group), _bytes(operation, "token")] = renewed
        return 1

    # Translation

    def _wait(self, result: Any) -> Any:
        return self.runner.run(_awaited(result)) if inspect.isawaitable(result) and self.runner else result

    def _queue(self, operation: Operation, *, now_ms: int | None = None, arrival: bool = False) -> Any:
        """The transport with these settings, made once; a client's clock shows what the operation says."""
        candidates = self._number(operation, "candidates") if operation.op == "claim" else 8
        own_clock = now_ms is not None and (arrival or operation.op != "publish")
        if own_clock:
            assert now_ms is not None
            self.now_s = now_ms / 1000
        key = operation.prefix, candidates, own_clock, arrival
        if key not in self.queues:
            transport: Callable[..., Any] = AsyncRedisTransport if self.kind == "async" else RedisTransport
            self.queues[key] = transport(
                self.library_client,
                prefix=decode(operation.prefix),
                clock=(lambda: self.now_s) if own_clock else None,
                candidates=candidates,
                new_groups="arrival" if arrival else "first",
            )
            if self.scripts:
                self.queues[key]._calls.scripts = self.scripts
        return self.queues[key]

    def _lease(self, operation: Operation) -> Lease:
        group, token = _bytes(operation, "group"), _bytes(operation, "token")
        made_up = Lease(decode(group), b"", decode(token), 30.0, 0.0)
        return self.leases.get((operation.prefix, group, token), made_up)

    @staticmethod
    def _number(operation: Operation, name: str) -> int:
        value = operation[name]
        if not isinstance(value, int):
            raise Inexpressible(f"{name} that is no integer")
        return value

    @staticmethod
    def _instant(operation: Operation, name: str) -> int | None:
        value = operation[name]
        if isinstance(value, bytes):
            raise Inexpressible(f"{name} that is no integer")
        return value

    def _seconds(self, operation: Operation, name: str) -> float:
        return self._number(operation, name) / 1000


def _bytes(operation: Operation, name: str) -> bytes:
    value = operation[name]
    assert isinstance(value, bytes)
    return value


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def _async_client(host: Any) -> Any:
    if hasattr(host, "async_client"):
        return host.async_client()
    return redis.asyncio.Redis.from_url(host.url)
