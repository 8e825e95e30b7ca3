"""A cluster of three nodes: every operation of both transports, the cache lost, and a slot that moves meanwhile."""

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
from tests.faults.transports import KINDS, Waiting, everything_once
from tests.support.cluster import NODES, Cluster
from tests.support.running import BaseServer
from tests.support.servers import Server

PREFIX = "{orders}"
GROUPS = [f"g{number}" for number in range(40)]


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, Cluster]]:
    """The cluster of each kind of server, started once."""
    started: dict[str, Cluster] = {}
    yield started
    for cluster in started.values():
        cluster.stop()


@pytest.fixture
def cluster(server: BaseServer, clusters: dict[str, Cluster]) -> Cluster:
    """Three nodes like the server, without keys and scripts."""
    if not isinstance(server, Server):
        pytest.skip(f"{server.name}: nodes like it cannot be started from here")
    if server.name not in clusters:
        clusters[server.name] = Cluster(server.binary)
    made = clusters[server.name]
    for client in made.clients:
        client.execute_command("FLUSHALL")
        client.execute_command("SCRIPT", "FLUSH")
    return made


@contextlib.contextmanager
def queue_of(kind: str, cluster: Cluster, prefix: str = PREFIX) -> Iterator[Any]:
    """A queue over a cluster client, to be called as if it were blocking."""
    address = {"host": "127.0.0.1", "port": cluster.nodes[0].port}
    if kind == "sync":
        with contextlib.closing(redis.cluster.RedisCluster(**address)) as client:
            yield RedisTransport(client, prefix)
        return
    with asyncio.Runner() as runner:
        waiting: Any = redis.asyncio.cluster.RedisCluster(**address)
        try:
            yield Waiting(AsyncRedisTransport(waiting, prefix), runner)
        finally:
            runner.run(waiting.aclose())


def holder(cluster: Cluster) -> int:
    """The node that holds keys of the queue; there is one."""
    (number,) = [number for number, keys in enumerate(cluster.keys(cluster.slot(PREFIX))) if keys]
    return number


def drain(queue: Any) -> list[tuple[str, str]]:
    """What the queue delivers until it is empty."""
    delivered = []
    while lease := queue.claim():
        delivered.append((lease.group, lease.text))
        assert queue.ack(lease) is True
    return delivered


@pytest.mark.parametrize("kind", KINDS)
def test_every_operation(cluster: Cluster, kind: str) -> None:
    """B43: with a hash tag every operation works on each node, on a cold and a warm cache, and leaves no key."""
    tags = [next(f"{{t{n}}}" for n in range(99) if cluster.slot(f"{{t{n}}}") * NODES // 16384 == at) for at in range(3)]
    for tag in tags:
        with queue_of(kind, cluster, f"{tag}:queue") as queue:
            everything_once(queue)
            everything_once(queue)
    assert [client.dbsize() for client in cluster.clients] == [0] * NODES


@pytest.mark.parametrize("kind", KINDS)
def test_many_messages_keep_their_order(cluster: Cluster, kind: str) -> None:
    """B43, B40: many messages in one round trip, the cache of the node lost between, keep their order in one slot."""
    with queue_of(kind, cluster) as queue:
        for start in (0, 100):
            messages = [(GROUPS[n % 7], f"{start + n:04}") for n in range(100)]
            assert len(queue.publish_many(messages, chunk=30)) == 100
            cluster.clients[holder(cluster)].execute_command("SCRIPT", "FLUSH")
        slot = cluster.slot(PREFIX)
        assert sum(client.dbsize() for client in cluster.clients) == len(cluster.keys(slot)[holder(cluster)])
        leases = queue.claim_many(7)
        cluster.clients[holder(cluster)].execute_command("SCRIPT", "FLUSH")
        assert [queue.nack(lease) for lease in leases] == [True] * 7
        delivered = drain(queue)
    assert len(delivered) == 200
    for group in GROUPS[:7]:
        texts = [text for name, text in delivered if name == group]
        assert texts == sorted(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_that_moves(cluster: Cluster, kind: str) -> None:
    """B43: a slot whose keys move in one batch loses nothing: refused while it is open, and then the client goes on."""
    with queue_of(kind, cluster) as queue:
        queue.publish_many([(group, "1") for group in GROUPS])
        lease = queue.claim()
        source = holder(cluster)
        target, slot = (source + 1) % NODES, cluster.slot(PREFIX)
        cluster.begin_move(slot, source, target)
        try:
            assert queue.publish("g1", "2") == 2
            for call in (queue.claim, lambda: queue.publish("new", "1")):
                with pytest.raises(redis.ResponseError, match="non local key"):
                    call()
            cluster.move(cluster.keys(slot)[source], source, target)
            assert queue.publish("g2", "2") == 2  # ASK
            assert queue.publish_many([("g3", "2"), ("g3", "3"), ("g4", "2"), ("g3", "4")]) == [2, 3, 2, 4]
            assert queue.extend(lease) is not None
            assert queue.ack(lease) is True
            second = queue.claim()
            assert second is not None
        finally:
            cluster.end_move(slot, target)
        assert queue.nack(second) is True  # MOVED
        assert queue.publish("g5", "2") == 2
        expected = {(group, "1") for group in GROUPS} - {(lease.group, "1")}
        expected |= {(group, "2") for group in ("g1", "g2", "g3", "g4", "g5")} | {("g3", "3"), ("g3", "4")}
        delivered = drain(queue)
        assert sorted(delivered) == sorted(expected)
        assert [text for group, text in delivered if group == "g3"] == ["1", "2", "3", "4"]
    assert [client.dbsize() for client in cluster.clients] == [0] * NODES
    cluster.begin_move(slot, target, source)
    cluster.end_move(slot, source)


def test_keys_that_move_before_the_rest(cluster: Cluster) -> None:
    """B43: moved in batches, `prio` last loses nothing; `prio` first splits the queue, as is told of reshardings."""
    with queue_of("sync", cluster) as queue:
        for last in (True, False):
            queue.publish("g", "1")
            source = holder(cluster)
            target, slot = (source + 1) % NODES, cluster.slot(PREFIX)
            prio = [f"{PREFIX}:prio".encode()]
            rest = [key for key in cluster.keys(slot)[source] if key not in prio]
            cluster.begin_move(slot, source, target)
            cluster.move(rest if last else prio, source, target)
            if last:
                for call in (queue.claim, lambda: queue.publish("g", "2")):
                    with pytest.raises(redis.ResponseError, match="non local key"):
                        call()
                cluster.move(prio, source, target)
            else:
                assert queue.publish("g", "2") == 1, "a list of its own, on the other node"
                with pytest.raises(redis.ResponseError, match="BUSYKEY"):
                    cluster.move(rest, source, target)
                for client in cluster.clients:
                    client.execute_command("FLUSHALL")
            cluster.end_move(slot, target)
            assert drain(queue) == ([("g", "1")] if last else [])
            cluster.begin_move(slot, target, source)
            cluster.end_move(slot, source)


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_hash_tag(cluster: Cluster, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """B43: without a hash tag a queue is refused with the fix; without that guard its script meets another's key."""
    with pytest.raises(InvalidArgument, match=r"hash tag.*\{orders\}"), queue_of(kind, cluster, "orders"):
        pass
    monkeypatch.setattr("redisq.arguments.hash_tag", lambda prefix: prefix)
    with queue_of(kind, cluster, "orders") as queue, pytest.raises(redis.ResponseError, match="non local key"):
        queue.publish_many([(group, "m") for group in GROUPS])


def test_a_cluster_refuses_keys_of_two_slots(cluster: Cluster) -> None:
    """B43: a call that declares keys of two slots is refused at once, which is why the one declared key has the tag."""
    with pytest.raises(redis.ResponseError, match=r"CROSSSLOT|same slot"):
        cluster.clients[0].execute_command("EVAL", SCRIPTS["ack"].source, 2, "a", "b")
