"""Queues and clients for the tests of the library: both transports, called in one way, over every client library."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import fakeredis
import pytest

from redisq import AsyncRedisTransport, RedisTransport
from redisq.scripts import SCRIPTS

MESSAGES = [("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1"), ("a", "a3"), ("b", "b2")]
STORED = {"a": ["a1", "a2", "a3"], "b": ["b1", "b2"], "c": ["c1"]}
"""Messages of three groups, and what the groups hold when all are stored."""

KINDS = ("sync", "async")
"""The two transports."""


class Blocking:
    """An object of asyncio, called as if it were blocking: every coroutine runs to its end."""

    def __init__(self, wrapped: Any, runner: asyncio.Runner) -> None:
        self.wrapped = wrapped
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.wrapped, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            result = attribute(*args, **options)
            return self._runner.run(_wait(result)) if inspect.isawaitable(result) else result

        return call

    def close(self) -> None:
        """What the asyncio classes call aclose."""
        self._runner.run(self.wrapped.aclose())


async def _wait(awaitable: Any) -> Any:
    return await awaitable


class Bench:
    """Makes queues of one kind, and ends what they leave open."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.runner = asyncio.Runner()
        self.clients: list[Any] = []

    def blocking(self, thing: Any) -> Any:
        """`thing`, to be called as if it were blocking."""
        return Blocking(thing, self.runner) if self.kind == "async" else thing

    def fake(self, **options: Any) -> Any:
        """A fakeredis client of this kind, on a server of its own unless one is given."""
        options.setdefault("server", fakeredis.FakeServer())
        make = fakeredis.FakeAsyncRedis if self.kind == "async" else fakeredis.FakeRedis
        return self.keep(make(**options))

    def real(self, url: str, library: str = "redis", **options: Any) -> Any:
        """A client of `redis` or `valkey` of this kind for a server."""
        name = {"redis": "Redis", "valkey": "Valkey"}[library]
        module = import_module(f"{library}.asyncio" if self.kind == "async" else library)
        return self.keep(getattr(module, name).from_url(url, **options))

    def keep(self, client: Any) -> Any:
        """Closes the client at the end."""
        self.clients.append(client)
        return client

    def queue(self, client: Any, *args: Any, **options: Any) -> Any:
        """The transport of this kind over a client, to be called as if it were blocking."""
        return self.blocking(self.transport(client, *args, **options))

    @property
    def transport(self) -> Any:
        """The class of this kind."""
        return AsyncRedisTransport if self.kind == "async" else RedisTransport

    def wrap(self, client: Any, execute: Callable[..., Any], pipeline: Callable[..., Any] | None = None) -> Any:
        """A client of this kind that runs each command by `execute(client, *args, **options)`.

        `client` is one of blocking calls for both kinds. A pipeline sends its commands one after another by
        `execute` and keeps the errors of the server as replies, unless `pipeline` makes another one.
        """

        def run(*args: Any, **options: Any) -> Any:
            return execute(client, *args, **options)

        make = pipeline or (lambda: Pipe(run))
        return AsyncWrapped(run, make) if self.kind == "async" else Wrapped(run, make)

    def end(self) -> None:
        """Closes the clients."""
        for client in self.clients:
            self.blocking(client).close()
        self.runner.close()


class Wrapped:
    """A client that is no more than what the transport needs."""

    def __init__(self, run: Callable[..., Any], make: Callable[[], Any]) -> None:
        self.run = run
        self.make = make

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Runs one command."""
        return self.run(*args, **options)

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline that is no transaction."""
        assert transaction is False
        return self.make()


class AsyncWrapped(Wrapped):
    """The same for asyncio."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Runs one command."""
        return self.run(*args, **options)

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline that is no transaction."""
        return AsyncPipe(super().pipeline(transaction))


class Pipe:
    """A pipeline that sends its commands one by one, so that something can happen in between."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run
        self.commands: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Puts one command in line."""
        self.commands.append((args, options))
        return self

    def execute(self, raise_on_error: bool) -> list[Any]:
        """Sends them; an error of the server is a reply."""
        assert raise_on_error is False
        replies: list[Any] = []
        for args, options in self.commands:
            try:
                replies.append(self.run(*args, **options))
            except Exception as error:
                if not any(base.__name__ == "ResponseError" for base in type(error).__mro__):
                    raise
                replies.append(error)
        return replies


class AsyncPipe:
    """The same for asyncio."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Puts one command in line."""
        return self.pipe.execute_command(*args, **options)

    async def execute(self, raise_on_error: bool) -> list[Any]:
        """Sends them."""
        return self.pipe.execute(raise_on_error)


class Meddled:
    """A queue where something happens before the n-th command it sends, counted from 0."""

    def __init__(self, bench: Bench) -> None:
        self.sent = 0
        self.meddling: dict[int, Callable[[Any], Any]] = {}
        self.commands = fakeredis.FakeRedis(server=fakeredis.FakeServer())
        self.queue = bench.queue(bench.wrap(self.commands, self.execute))

    def execute(self, client: Any, *args: Any, **options: Any) -> Any:
        """Runs one command, after what is to happen before it."""
        meddle = self.meddling.pop(self.sent, None)
        self.sent += 1
        if meddle:
            meddle(client)
        return client.execute_command(*args, **options)

    def before(self, index: int, meddle: Callable[[Any], Any]) -> None:
        """Has something happen before the command `index`, counted from now."""
        self.meddling[self.sent + index] = meddle


def flush(client: Any) -> None:
    """Empties the script cache."""
    client.execute_command("SCRIPT FLUSH")


def load(client: Any) -> None:
    """Another client runs the scripts."""
    for script in SCRIPTS.values():
        client.execute_command("SCRIPT LOAD", script.source)


def news(error: BaseException, *names: str) -> tuple[Any, ...]:
    """What an error tells under the names of attributes."""
    return tuple(getattr(error, name) for name in names)


def raising(error: BaseException) -> Callable[[Any], Any]:
    """Has the client raise an error."""

    def fail(_: Any) -> None:
        raise error

    return fail


def contents(queue: Any, visibility: float = 30.0) -> dict[str, list[str]]:
    """Drains a queue: the messages of each group, in the order in which they came."""
    got: dict[str, list[str]] = {}
    while lease := queue.claim(visibility):
        got.setdefault(lease.group, []).append(lease.text)
        assert queue.ack(lease)
    return got


def needs(library: str) -> Any:
    """Skips, visibly, if the client library is not installed."""
    return pytest.importorskip(library, reason=f"{library} is not installed")
