"""Many claims, or an ack and a claim, in one round trip: no lease is lost."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import redis

from tests.unit.queues import MESSAGES, Bench, Meddled, flush, load, news, raising


def test_claim_many_takes_one_lease_per_group(queue: Any) -> None:
    """It returns as many leases as groups are free, at most `count`, with a token each, in the order of claims."""
    queue.publish_many(MESSAGES)
    leases = queue.claim_many(2, visibility=60, worker_id="w")
    assert [(lease.group, lease.payload, lease.visibility) for lease in leases] == [
        ("a", b"a1", 60.0),
        ("b", b"b1", 60.0),
    ]
    rest = queue.claim_many(100, min_priority=1) + queue.claim_many(5)
    assert [lease.group for lease in rest] == ["c"]
    assert len({lease.token for lease in leases + rest}) == 3
    assert all(queue.ack(lease) for lease in leases + rest)


def test_claim_many_is_one_round_trip_of_a_warm_cache(meddled: Meddled) -> None:
    """No command is sent beside the claims."""
    meddled.queue.publish_many(MESSAGES)
    meddled.queue.claim(min_priority=4)
    meddled.sent = 0
    meddled.queue.claim_many(7)
    assert meddled.sent == 7


def test_no_flush_anywhere_loses_a_lease(bench: Bench) -> None:
    """A cache emptied and filled at any place costs no claim: three groups give three leases."""
    for flushed, loaded in combinations(range(6), 2):
        meddled = Meddled(bench)
        meddled.queue.publish_many(MESSAGES)
        meddled.before(flushed, flush)
        meddled.before(loaded, load)
        assert {lease.group for lease in meddled.queue.claim_many(4)} == {"a", "b", "c"}
        assert meddled.queue.claim() is None


def test_claim_many_returns_what_it_got(meddled: Meddled) -> None:
    """A failing claim does not take the leases of the others with it; a failure of all is raised."""
    meddled.queue.publish_many(MESSAGES)
    meddled.queue.claim(min_priority=4)
    meddled.before(1, raising(redis.ResponseError("OOM")))
    assert [lease.group for lease in meddled.queue.claim_many(3)] == ["a", "b"]
    first = redis.ResponseError("OOM")
    meddled.before(0, raising(first))
    meddled.before(1, raising(redis.ResponseError("second")))
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.claim_many(2)
    assert caught.value is first
    meddled.before(1, flush)
    meddled.before(2, raising(redis.ConnectionError("gone")))
    assert [lease.group for lease in meddled.queue.claim_many(2)] == ["c"]


def test_claim_many_raises_a_lost_connection(meddled: Meddled) -> None:
    """A pipeline whose replies are lost raises the client's error."""
    error = redis.ConnectionError("gone")
    meddled.before(1, raising(error))
    with pytest.raises(redis.ConnectionError) as caught:
        meddled.queue.claim_many(3)
    assert caught.value is error


def test_ack_and_claim_does_both(meddled: Meddled) -> None:
    """It settles the lease first, so its own group can be claimed, in one round trip."""
    meddled.queue.publish_many([("a", "a1"), ("a", "a2")])
    load(meddled.commands)
    lease = meddled.queue.claim()
    meddled.sent = 0
    acked, following = meddled.queue.ack_and_claim(lease, visibility=60, min_priority=0, worker_id="w")
    assert (acked, following.payload, following.visibility) == (True, b"a2", 60.0)
    assert following.token.startswith("w:")
    assert meddled.sent == 2
    assert meddled.queue.ack_and_claim(lease) == (False, None)
    assert meddled.queue.ack_and_claim(following) == (True, None)
    assert meddled.commands.keys("*") == []


def test_no_flush_anywhere_parts_ack_from_claim(bench: Bench) -> None:
    """A cache emptied and filled at any place: the lease is settled once, and its group claimed after it."""
    for flushed, loaded in combinations(range(4), 2):
        meddled = Meddled(bench)
        meddled.queue.publish_many([("a", "a1"), ("a", "a2")])
        lease = meddled.queue.claim()
        load(meddled.commands)
        meddled.before(flushed, flush)
        meddled.before(loaded, load)
        acked, following = meddled.queue.ack_and_claim(lease)
        assert (acked, following.payload) == (True, b"a2")
        assert meddled.queue.ack(following)
        assert meddled.commands.keys("*") == []


def test_a_lease_is_not_lost_with_a_failed_ack(meddled: Meddled) -> None:
    """If the ack fails and the claim takes a lease, the ack's error carries the lease."""
    meddled.queue.publish_many([("a", "1"), ("b", "1")])
    lease = meddled.queue.claim()
    load(meddled.commands)
    error = redis.ResponseError("OOM")
    meddled.before(0, raising(error))
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.ack_and_claim(lease)
    assert caught.value is error
    acked, other = news(error, "acked", "lease")
    assert (acked, other.group) == (None, "b")
    assert error.__notes__ == ["ack_and_claim: the ack failed; the claim took a lease"]
    assert meddled.queue.ack(other)
    assert meddled.queue.ack(lease)


@pytest.mark.parametrize(
    ("settled", "told"), [(True, "the ack settled the lease"), (False, "the ack found that the token holds no lease")]
)
def test_a_failed_claim_tells_of_the_ack(meddled: Meddled, settled: bool, told: str) -> None:
    """If the claim fails, its error says what the ack did."""
    meddled.queue.publish("a", "1")
    lease = meddled.queue.claim()
    if not settled:
        meddled.queue.ack(lease)
    load(meddled.commands)
    error = redis.ResponseError("OOM")
    meddled.before(1, raising(error))
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.ack_and_claim(lease)
    assert caught.value is error
    assert news(error, "acked", "lease") == (settled, None)
    assert error.__notes__ == [f"ack_and_claim: {told}; the claim failed"]


@pytest.mark.parametrize(("second", "told"), [(False, "found nothing"), (True, "failed")])
def test_a_failed_ack_tells_of_the_claim(meddled: Meddled, second: bool, told: str) -> None:
    """If the ack fails, its error is the one raised, whatever the claim does."""
    meddled.queue.publish("a", "1")
    lease = meddled.queue.claim()
    load(meddled.commands)
    error = redis.ResponseError("first")
    meddled.before(0, raising(error))
    if second:
        meddled.before(1, raising(redis.ResponseError("second")))
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.ack_and_claim(lease)
    assert caught.value is error
    assert news(error, "acked", "lease") == (None, None)
    assert error.__notes__ == [f"ack_and_claim: the ack failed; the claim {told}"]
