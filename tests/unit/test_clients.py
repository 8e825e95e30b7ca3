"""Every client library, and which clients are refused."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import fakeredis
import pytest
import redis

from redisq import AsyncRedisTransport, InvalidArgument, RedisTransport
from tests.unit.queues import Bench, contents, needs

CLIENTS = ("redis", "valkey", "fakeredis", "fakevalkey")
PROTOCOLS = (None, 2, 3)


def make(bench: Bench, request: pytest.FixtureRequest, name: str, options: dict[str, Any]) -> Any:
    """A client of the kind by its name, on an empty server."""
    if name in ("redis", "valkey"):
        needs(name)
        return bench.real(request.getfixturevalue("server").url, name, **options)
    if name == "fakeredis":
        return bench.fake(**options)
    needs("valkey")
    fake = fakeredis.FakeAsyncValkey if bench.kind == "async" else fakeredis.FakeValkey
    return bench.keep(fake(server=fakeredis.FakeServer(server_type="valkey"), **options))


@pytest.mark.parametrize("decode", [False, True])
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_gives_the_same(
    bench: Bench, request: pytest.FixtureRequest, name: str, protocol: int | None, decode: bool
) -> None:
    """All operations give the same over every client, however it decodes and whatever protocol it speaks."""
    options: dict[str, Any] = {"decode_responses": decode}
    if protocol is not None:
        options["protocol"] = protocol
    queue = bench.queue(make(bench, request, name, options))
    assert queue.publish(b"\xff", b"\xfe\x00", priority=4) == 1
    assert queue.publish_many([("a", ""), (b"\xff", "\u00fc", 0), ("b", b"1")]) == [1, 2, 1]
    first = queue.claim(visibility=60, min_priority=4, worker_id="w\u00f6rker")
    assert (first.group, first.payload) == ("\udcff", b"\xfe\x00")
    assert first.token.startswith("w\u00f6rker:")
    assert queue.claim(min_priority=4) is None
    assert queue.extend(first).token == first.token
    leases = queue.claim_many(5)
    assert [(lease.group, lease.payload) for lease in leases] == [("a", b""), ("b", b"1")]
    assert queue.nack(leases[0]) is True
    assert queue.nack(leases[0]) is False
    acked, second = queue.ack_and_claim(first, min_priority=4)
    assert (acked, second.group, second.payload) == (True, "\udcff", "\u00fc".encode())
    assert queue.ack(first) is False
    assert queue.extend(first) is None
    assert queue.ack(second) is True
    assert queue.ack_and_claim(leases[1], min_priority=1) == (True, None)
    assert contents(queue) == {"a": [""]}


def test_a_client_of_the_other_kind_is_refused(bench: Bench) -> None:
    """Each transport names the other one for the other kind of client, before anything is sent."""
    other: Any = RedisTransport if bench.kind == "async" else AsyncRedisTransport
    client = bench.fake()
    with pytest.raises(InvalidArgument, match=rf"for {other.__name__} \(this one is for {bench.transport.__name__}\)"):
        other(client)


def test_a_pipeline_is_refused(bench: Bench) -> None:
    """A pipeline answers later, so it cannot be used as a client."""
    with pytest.raises(InvalidArgument, match="not a pipeline"):
        bench.transport(bench.fake().pipeline())


@pytest.mark.parametrize("client", [None, "redis://host", redis.Redis, object(), redis.ConnectionPool()], ids=repr)
def test_what_is_no_client_is_refused(bench: Bench, client: Any) -> None:
    """The error says what a client has."""
    with pytest.raises(InvalidArgument, match="client must be") as caught:
        bench.transport(client)
    assert caught.value.argument == "client"


def test_mocked_clients_are_taken() -> None:
    """A client needs no more than execute_command and pipeline; a mock of one is fine."""
    for mock in (MagicMock(), MagicMock(spec=redis.Redis)):
        mock.execute_command.return_value = 1
        assert RedisTransport(mock).publish("g", "p") == 1


def test_an_asyncio_client_is_known_by_its_close() -> None:
    """A client whose execute_command only hands out an awaitable is one of asyncio all the same."""

    class Instrumented:
        def execute_command(self, *args: Any, **options: Any) -> Any:
            """Never called."""

        def pipeline(self, transaction: bool) -> Any:
            """Never called."""

        async def aclose(self) -> None:
            """Never called."""

    AsyncRedisTransport(Instrumented())
    with pytest.raises(InvalidArgument, match="AsyncRedisTransport"):
        RedisTransport(Instrumented())


class SomeCluster:
    """A cluster client is known by its name."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Never called."""

    def pipeline(self, transaction: bool) -> Any:
        """Never called."""


class Derived(SomeCluster):
    """Also a class under one."""


@pytest.mark.parametrize("client", [SomeCluster(), Derived()])
def test_a_cluster_needs_a_hash_tag(client: Any) -> None:
    """Without a hash tag the keys of a queue would be in many slots; the error says what to write."""
    for prefix, fix in [("redisq", "{redisq}"), ("a{}b", "{ab}"), ("{}", "{redisq}"), ("a:{", "{a:}")]:
        with pytest.raises(InvalidArgument, match="hash tag") as caught:
            RedisTransport(client, prefix)
        assert repr(fix) in caught.value.allowed
        RedisTransport(client, fix)
    RedisTransport(client, prefix="app:{orders}")


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("redis.cluster", "RedisCluster"),
        ("redis.asyncio.cluster", "RedisCluster"),
        ("valkey.cluster", "ValkeyCluster"),
        ("valkey.asyncio.cluster", "ValkeyCluster"),
    ],
)
def test_the_cluster_clients_are_known(module: str, name: str) -> None:
    """The cluster classes of the client libraries are refused without a hash tag, and taken with one."""
    cluster = getattr(needs(module), name)
    client = cluster.__new__(cluster)
    client.close = lambda: None
    transport: Any = AsyncRedisTransport if "asyncio" in module else RedisTransport
    with pytest.raises(InvalidArgument, match="hash tag"):
        transport(client)
    transport(client, "{orders}")


def test_a_plain_client_needs_no_hash_tag(bench: Bench) -> None:
    """The commands of a cluster that every client of redis-py inherits do not make it a cluster client."""
    assert any("Cluster" in base.__name__ for base in redis.Redis.__mro__)
    bench.transport(bench.fake())
