"""Reports of the client: lost replies, decoding, protocols, and payloads of any size."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from redisq import Lease, RedisTransport
from tests.faults.proxy import Proxy
from tests.faults.transports import KINDS, transport, warm
from tests.support.running import BaseServer

PROTOCOLS = (None, 2, 3)
LARGE = 64 * 1024 * 1024


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_reply_that_is_retried(server: BaseServer, kind: str) -> None:
    """B61, FAIL-1, FAIL-2, FAIL-3: a client that retries publishes twice, loses a lease, and denies its own ack."""
    server.clock.prefixes = ["redisq"]
    seen: Any = server.client()
    warm(server)
    with Proxy(server.url) as proxy, transport(kind, proxy.url, retries=3) as queue:
        assert queue.publish("g", "0") == 1
        proxy.lose_reply()
        assert queue.publish("g", "1") == 3
        assert seen.lrange("redisq:q:g", 0, -1) == [b"0", b"1", b"1"]
        proxy.lose_reply()
        assert queue.claim(visibility=30) is None  # the lease is the first try's, which nobody knows
        assert seen.exists("redisq:lock:g") == 1
        queue.publish_many([("h", "2"), ("i", "3")])
        proxy.lose_reply()
        lease = taken(queue)
        assert lease.group == "i"  # and h is leased
        assert seen.exists("redisq:lock:h") == 1
        proxy.lose_reply()
        assert queue.ack(lease) is False  # it settled
        assert seen.exists("redisq:q:i") == 0
        server.clock.advance(30_001)
        left = []
        while lease := queue.claim():
            left.append(lease.text)
            assert queue.ack(lease)
    assert sorted(left) == ["0", "1", "1", "2"]


def taken(queue: Any) -> Lease:
    """A claim that finds something."""
    lease = queue.claim(visibility=30)
    assert isinstance(lease, Lease)
    return lease


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_settlement_that_is_retried(server: BaseServer, kind: str) -> None:
    """B61, FAIL-4, FAIL-5: a client that retries renews a lease twice, and denies its nack, which settled once."""
    server.clock.prefixes = ["redisq"]
    seen: Any = server.client()
    warm(server)
    with Proxy(server.url) as proxy, transport(kind, proxy.url, retries=3) as queue:
        queue.publish("g", "1")
        lease = taken(queue)
        proxy.lose_reply()
        assert queue.extend(lease, visibility=60).token == lease.token
        proxy.lose_reply()
        assert queue.nack(lease, delay=10) is False  # it parked
        assert seen.get("redisq:lock:g") == b"parked"
        assert queue.claim() is None
        server.clock.advance(10_001)
        lease = taken(queue)
        proxy.lose_reply()
        assert queue.nack(lease) is False  # it gave the message back
        assert queue.ack(taken(queue)) is True
    assert seen.dbsize() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_reply_without_retries(server: BaseServer, kind: str) -> None:
    """B61, FAIL-3: without retries a lost reply is the client's error, its call took effect, and the next one works."""
    server.clock.prefixes = ["redisq"]
    warm(server)
    with Proxy(server.url) as proxy, transport(kind, proxy.url) as queue:
        queue.publish("g", "1")
        for lose, stored in ((proxy.lose_request, 1), (proxy.lose_reply, 2)):
            lose()
            with pytest.raises(redis.ConnectionError):
                queue.publish("g", "2")
            assert server.client().llen("redisq:q:g") == stored
        proxy.lose_reply()
        with pytest.raises(redis.ConnectionError):
            queue.claim(visibility=30)
        assert queue.claim() is None
        server.clock.advance(30_001)
        lease = taken(queue)
        proxy.lose_reply()
        with pytest.raises(redis.ConnectionError):
            queue.ack(lease)
        assert queue.ack(lease) is False
        assert server.client().lrange("redisq:q:g", 0, -1) == [b"2"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_reply_of_many(server: BaseServer, kind: str) -> None:
    """B61: publish_many whose reply is lost tells which messages were stored and which may have been."""
    warm(server)
    with Proxy(server.url) as proxy, transport(kind, proxy.url) as queue:
        queue.publish("g", "0")
        proxy.lose_reply()
        with pytest.raises(redis.ConnectionError) as caught:
            queue.publish_many([("g", "1"), ("h", "2")])
        assert vars(caught.value)["published"] == [None, None]
        assert vars(caught.value)["unknown"] == [0, 1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_any_bytes_by_any_client(server: BaseServer, kind: str, protocol: int | None) -> None:
    """B65, B66, KEYS-1: a payload that is no UTF-8 comes through alike, decoded or not, in each protocol."""
    payload = bytes(range(256))
    for decode in (True, False):
        options: dict[str, Any] = {"decode_responses": decode, **({"protocol": protocol} if protocol else {})}
        with transport(kind, server.url, **options) as queue:
            assert queue.publish(b"\xff", payload) == 1
            assert queue.publish_many([(b"\xff", b""), (b"\xff", payload)]) == [2, 3]
            (lease,) = queue.claim_many(2)
            assert (lease.group, lease.payload) == ("\udcff", payload)
            assert queue.extend(lease, 60).token == lease.token
            acked, lease = queue.ack_and_claim(lease)
            assert (acked, lease.payload) == (True, b"")
            assert queue.nack(lease) is True
            for expected in (b"", payload):
                lease = queue.claim()
                assert lease.payload == expected
                assert queue.ack(lease) is True
            assert queue.claim() is None


def test_decoding_before_the_library_is_seen(server: BaseServer) -> None:
    """What B65 reports: a claim by a plain client that decodes raises after the lease was taken."""
    client: Any = server.client(decode_responses=True)
    queue = RedisTransport(server.client())
    queue.publish("g", b"\xff")
    call = queue._calls.claim(30, 0, "")
    with pytest.raises(UnicodeDecodeError):
        client.execute_command(*call.by_source)
    assert server.client().exists("redisq:lock:g") == 1


def test_a_large_payload(server: BaseServer) -> None:
    """B70: 64 MB go through; what no server takes by default is refused before it is sent (`tests/unit`)."""
    queue = RedisTransport(server.client())
    payload = b"x" * LARGE
    assert queue.publish("g", payload) == 1
    lease = taken(queue)
    assert lease.payload == payload
    assert queue.ack(lease)
