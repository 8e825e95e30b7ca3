"""Transports of both kinds to be called in one way, over clients that raise what goes wrong at once."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterator
from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from redisq import AsyncRedisTransport, RedisTransport
from redisq.scripts import SCRIPTS
from tests.support.running import BaseServer

KINDS = ("sync", "async")


class Waiting:
    """An object of asyncio whose coroutines run to their end when called."""

    def __init__(self, wrapped: Any, runner: asyncio.Runner) -> None:
        self._wrapped = wrapped
        self._runner = runner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._wrapped, name)

        def call(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            return self._runner.run(_wait(result)) if inspect.isawaitable(result) else result

        return call


def warm(server: BaseServer) -> None:
    """Loads the scripts, so that the first reply of each is no NOSCRIPT."""
    client: Any = server.client()
    for script in SCRIPTS.values():
        client.script_load(script.source)


async def _wait(awaitable: Any) -> Any:
    return await awaitable


def sync_client(url: str, retries: int = 0, **options: Any) -> redis.Redis:
    """A client that retries so often, at once."""
    return redis.Redis.from_url(url, retry=Retry(NoBackoff(), retries), **_on_error(retries), **options)


def async_client(url: str, retries: int = 0, **options: Any) -> redis.asyncio.Redis:
    """The same for asyncio."""
    return redis.asyncio.Redis.from_url(url, retry=AsyncRetry(NoBackoff(), retries), **_on_error(retries), **options)


def _on_error(retries: int) -> dict[str, Any]:
    # redis-py 8 retries errors of the connection by itself, redis-py 5 those that are named.
    return {"retry_on_error": [redis.ConnectionError]} if retries else {}


@contextlib.contextmanager
def client(kind: str, url: str, retries: int = 0, **options: Any) -> Iterator[tuple[Any, asyncio.Runner | None]]:
    """A client of a kind, and the runner of an asyncio one; closed at the end."""
    if kind == "sync":
        with contextlib.closing(sync_client(url, retries, **options)) as blocking:
            yield blocking, None
        return
    with asyncio.Runner() as runner:
        made: Any = async_client(url, retries, **options)
        try:
            yield made, runner
        finally:
            runner.run(made.aclose())


@contextlib.contextmanager
def transport(kind: str, url: str, retries: int = 0, wrap: Any = None, **options: Any) -> Iterator[Any]:
    """A queue of a kind, to be called as if it were blocking; `wrap` makes another client of the client."""
    with client(kind, url, retries, **options) as (made, runner):
        used = wrap(made) if wrap else made
        yield RedisTransport(used) if runner is None else Waiting(AsyncRedisTransport(used), runner)


def everything_once(queue: Any) -> None:
    """Every operation does what it does, once."""
    assert queue.publish("g", "1") == 1
    assert queue.publish_many([("g", "2"), ("h", "3"), ("g", "4"), ("h", "5")]) == [2, 1, 3, 2]
    first = queue.claim()
    assert (first.group, first.text) == ("g", "1")
    (second,) = queue.claim_many(3)
    assert (second.group, second.text) == ("h", "3")
    assert queue.extend(first, 60) is not None
    assert queue.nack(second) is True
    acked, again = queue.ack_and_claim(first)
    assert (acked, again.group, again.text) == (True, "h", "3")
    assert queue.ack(first) is False
    assert queue.ack(again) is True
    rest = []
    while lease := queue.claim():
        rest.append(lease.text)
        assert queue.ack(lease) is True
    assert sorted(rest) == ["2", "4", "5"]
