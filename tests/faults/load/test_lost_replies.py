"""Replies that are lost, and clients that then repeat the call by themselves: redis-py's own, ten times."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio

from redisq import AsyncRedisTransport, Lease, RedisTransport
from redisq.ops.doctor import retries_of
from tests.faults.load.account import told
from tests.faults.load.injury import lose_reply
from tests.faults.load.run import expect_kept
from tests.faults.load.test_load import Fault, suffer
from tests.faults.proxy import Proxy
from tests.faults.transports import KINDS, Waiting, warm
from tests.support.running import BaseServer

CUTS = Fault((lose_reply,), 40)


def test_clients_that_repeat_calls(server: BaseServer) -> None:
    """FAULT-10: with ten retries under load messages are stored twice, and none is lost or out of order."""
    account = suffer(server, CUTS, retries=10)
    expect_kept(account)
    assert account.duplicates["stored twice, or its ack was undone"] > 0, account.duplicates


def test_clients_that_do_not(server: BaseServer) -> None:
    """FAULT-10: without retries the same cuts store nothing twice."""
    account = suffer(server, CUTS)
    expect_kept(account)
    assert account.duplicates["stored twice, or its ack was undone"] == 0
    assert account.outcomes()["unknown"] > 20


def test_what_would_be_said_of_a_repeating_client(one_server: BaseServer) -> None:
    """An account that does not know that clients repeat calls tells of each message that was stored twice."""
    account = suffer(one_server, CUTS, retries=10)
    account.repeats = False
    account._judge_order()
    assert account.again, told(account.wrong)


@contextlib.contextmanager
def by_default(kind: str, proxy: Proxy) -> Iterator[Any]:
    """A queue over the client that most people make."""
    host, _, port = proxy.url.removeprefix("redis://").partition("/")[0].partition(":")
    if kind == "sync":
        with contextlib.closing(redis.Redis(host=host, port=int(port))) as blocking:
            assert retries_of(blocking) == 10
            yield RedisTransport(blocking)
        return
    with asyncio.Runner() as runner:
        client: Any = redis.asyncio.Redis(host=host, port=int(port))
        assert retries_of(client) == 10
        try:
            yield Waiting(AsyncRedisTransport(client), runner)
        finally:
            runner.run(client.aclose())


@contextlib.contextmanager
def safe(kind: str, proxy: Proxy) -> Iterator[Any]:
    """A queue over a client that repeats nothing: the library's own."""
    if kind == "sync":
        with RedisTransport.from_url(proxy.url) as queue:
            yield queue
        return
    with asyncio.Runner() as runner:
        made: Any = AsyncRedisTransport.from_url(proxy.url)
        try:
            yield Waiting(made, runner)
        finally:
            runner.run(made.aclose())


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_by_the_default_client(server: BaseServer, kind: str) -> None:
    """FAULT-10: what each operation answers whose reply was lost once, by a client that repeats calls ten times."""
    server.clock.prefixes = ["redisq"]
    warm(server)
    with Proxy(server.url) as proxy, by_default(kind, proxy) as queue:

        def lost(call: Callable[[], Any]) -> Any:
            proxy.lose_reply()
            answer = call()
            assert proxy.happened.is_set()
            return answer

        assert lost(lambda: queue.publish("g", "m")) == 2  # stored twice
        assert lost(lambda: queue.claim(30)) is None  # the group is leased to nobody
        server.clock.advance(30_001)
        lease = queue.claim(30)
        assert isinstance(lost(lambda: queue.extend(lease, 60)), Lease)  # renewed twice, which does no harm
        assert lost(lambda: queue.nack(lease)) is False  # and given back
        lease = queue.claim(30)
        assert lost(lambda: queue.ack(lease)) is False  # and settled
        lease = queue.claim(30)
        assert (lease.text, queue.ack(lease)) == ("m", True)  # the second copy
        assert server.client().keys() == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_operation_by_the_library_s_own(server: BaseServer, kind: str) -> None:
    """FAULT-10: a queue by `from_url` raises the error, and has done everything once."""
    server.clock.prefixes = ["redisq"]
    warm(server)
    seen: Any = server.client()
    with Proxy(server.url) as proxy, safe(kind, proxy) as queue:

        def lost(call: Callable[[], Any]) -> None:
            proxy.lose_reply()
            with pytest.raises(redis.ConnectionError):
                call()

        lost(lambda: queue.publish("g", "m"))
        assert seen.lrange("redisq:q:g", 0, -1) == [b"m"]
        lost(lambda: queue.claim(30))
        server.clock.advance(30_001)
        lease = queue.claim(30)
        lost(lambda: queue.extend(lease, 60))
        lost(lambda: queue.nack(lease))
        lease = queue.claim(30)
        lost(lambda: queue.ack(lease))
        assert queue.ack(lease) is False  # it had settled: False may mean just that, after an error
        assert seen.keys() == []
