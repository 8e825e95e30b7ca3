"""Reports of clusters and failovers: slots, read-only replicas, and two holders of one group."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio.cluster
import redis.cluster

from redisq import AsyncRedisTransport, InvalidArgument, RedisTransport
from redisq.scripts import SCRIPTS
from tests.faults.topology import another, in_step, promote, until
from tests.faults.transports import sync_client
from tests.support.running import BaseServer

GROUPS = ["plain", "{x}", "}{y}", "{}", "a{b}c{d}", "{orders}", "q:{z}"]


@pytest.fixture
def cluster(server: BaseServer) -> Iterator[BaseServer]:
    """A node of a cluster that has but one slot, that of `{orders}`; every other slot is another node's."""
    with another(server, "--cluster-enabled", "yes", "--cluster-require-full-coverage", "no") as node:
        client: Any = node.client()
        client.execute_command("CLUSTER", "ADDSLOTS", client.execute_command("CLUSTER", "KEYSLOT", "orders"))

        def ready() -> bool:
            if node.clock.exact:
                node.clock.advance(1000)  # a node waits for two seconds of its clock before it serves
            return "cluster_state:ok" in str(client.execute_command("CLUSTER", "INFO"))

        until(ready, "the cluster is up")
        yield node


def reached_at(cluster: BaseServer) -> dict[str, Any]:
    """The options of a cluster client for the one node."""
    address = "127.0.0.1", cluster.port
    return dict(zip(("host", "port"), address, strict=True)) | {
        "address_remap": lambda _: address,  # a container announces one that is not reached from here
        "require_full_coverage": False,
    }


def test_hash_tag_keeps_a_queue_together(cluster: BaseServer) -> None:
    """B43: with a hash tag every key is in one slot, whatever braces a group has; without one the client refuses."""
    with contextlib.closing(redis.cluster.RedisCluster(**reached_at(cluster))) as client:
        with pytest.raises(InvalidArgument, match="hash tag"):
            RedisTransport(client, "orders")
        queue = RedisTransport(client, "{orders}")
        for group in GROUPS:
            assert queue.publish(group, "m", priority=len(group) % 5) == 1
        leases = []
        while lease := queue.claim():
            leases.append(lease)
        assert sorted(lease.group for lease in leases) == sorted(GROUPS)
        assert queue.nack(leases[0], delay=5)
        assert queue.extend(leases[1])
        assert [queue.ack(lease) for lease in leases[1:]] == [True] * (len(GROUPS) - 1)
    seen: Any = cluster.client()
    assert len({seen.execute_command("CLUSTER", "KEYSLOT", key) for key in seen.keys("*")}) == 1


def test_hash_tag_by_asyncio(cluster: BaseServer) -> None:
    """B43: the same over the asyncio client of a cluster."""

    async def main() -> None:
        async with redis.asyncio.cluster.RedisCluster(**reached_at(cluster)) as client:
            queue = AsyncRedisTransport(client, "{orders}")
            for group in GROUPS:
                assert await queue.publish(group, "m") == 1
            lease = await queue.claim()
            assert lease is not None
            assert await queue.ack(lease)

    asyncio.run(main())


def test_without_a_hash_tag_a_script_ends_midway(cluster: BaseServer) -> None:
    """B43: without a hash tag a script meets a key of another node; that is what the client's refusal prevents."""
    client: Any = cluster.client()
    argv = ("{orders}x", "g", "m", "0", "0")
    assert client.execute_command("EVAL", SCRIPTS["publish"].source, 1, "{orders}:prio", *argv) == 1
    outside = ("orders-in-another-slot", "g", "m", "0", "0")
    with pytest.raises(redis.ResponseError):
        client.execute_command("EVAL", SCRIPTS["publish"].source, 1, "{orders}:prio", *outside)


def test_a_replica_that_is_promoted(server: BaseServer, replica: BaseServer) -> None:
    """B49: a replica's refusal is its own error with nothing written; promoted, the same client goes on."""
    RedisTransport(server.client()).publish_many([("g", "1"), ("g", "2")])
    in_step(server, replica)
    with contextlib.closing(sync_client(replica.url)) as client:
        queue = RedisTransport(client)
        before = {key: client.dump(key) for key in sorted(client.keys("*"))}
        for call in (lambda: queue.publish("g", "3"), lambda: queue.publish_many([("g", "3")]), queue.claim):
            with pytest.raises(redis.ResponseError) as caught:
                call()
            # 6.2 puts other words before the code.
            assert isinstance(caught.value, redis.ReadOnlyError) or "-READONLY" in str(caught.value)
        assert {key: client.dump(key) for key in sorted(client.keys("*"))} == before
        promote(replica)
        assert queue.publish("g", "3") == 3
        lease = queue.claim()
        assert lease is not None
        assert (lease.text, queue.ack(lease)) == ("1", True)


def test_two_holders_after_a_failover(server: BaseServer, replica: BaseServer) -> None:
    """B50: a replica promoted before it heard of a lease leases the group again: at least once, as documented."""
    RedisTransport(server.client()).publish("g", "m")
    in_step(server, replica)
    promote(replica)
    both = [RedisTransport(host.client()) for host in (server, replica)]
    leases = [queue.claim() for queue in both]
    assert [lease and lease.payload for lease in leases] == [b"m", b"m"]
    first, second = leases
    assert first is not None
    assert second is not None
    assert first.token != second.token
    assert both[1].ack(first) is False  # a token settles only where it was given
    assert both[0].ack(first) is True
    assert both[1].ack(second) is True
