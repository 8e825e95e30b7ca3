"""Reports of leases: lost, renewed, settled late, and who then holds the group."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import redis

import redisq.scripts
from redisq import RedisTransport
from tests.faults.judge import Control, Judge
from tests.faults.proxy import Proxy
from tests.faults.rig import Check, Rig, needs_exact_clock
from tests.faults.transports import transport, warm
from tests.support.running import BaseServer


def stale_ack(rig: Rig) -> None:
    """B01, NOT-1: an ack after the lease is refused and changes nothing; the new holder's pops exactly one."""
    rig.publish("g", "1")
    rig.publish("g", "2")
    rig.claim("A", visibility_ms=50)
    rig.wait(51)
    rig.expect(rig.claim("B") == (b"g", b"1"), "the message is not delivered again")
    before = rig.state()
    rig.expect(rig.ack("g", "A") == 0, "an ack after the lease is taken for a success")
    rig.expect(rig.unchanged(before), "a refused ack has changed something")
    rig.expect(rig.ack("g", "B") == 1, "the holder's ack is refused")
    rig.expect(rig.messages("g") == [b"2"], "the holder's ack has not popped exactly one")


def late_settlement(rig: Rig) -> None:
    """B03, SETTLE-1: whatever settles after the group went to B, B's lock and all else is as before, byte for byte."""
    for op, arguments in (
        ("ack", {}),
        ("nack", {}),
        ("nack", {"delay_ms": 700}),
        ("extend", {"visibility_ms": 90_000}),
    ):
        rig.reset()
        rig.publish("g", "1")
        rig.publish("g", "2")
        rig.claim("A", visibility_ms=50)
        rig.wait(51)
        rig.claim("B")
        before = rig.state()
        rig.do(op, group="g", token="A", **arguments)
        rig.expect(rig.unchanged(before), f"{op} by a lost lease has changed what B holds")


@needs_exact_clock
def renewal(rig: Rig) -> None:
    """B11, B12, EXTEND-1: extend keeps a group for many leases, moves lock and score, and no data key gets a TTL."""
    rig.publish("g", "m")
    rig.claim("A", visibility_ms=1000)
    for _ in range(6):
        rig.wait(900)
        rig.expect(rig.claim("B") is None, "a renewed group was claimed")
        rig.expect(rig.extend("g", "A", visibility_ms=1000) == 1, "the holder cannot renew")
        state = rig.state()
        lock = state.lock(b"g")
        rig.expect(lock is not None and lock.deadline_ms == rig.now_ms + 1000, "the lock did not move")
        rig.expect(state.ready[0] == {b"g": rig.now_ms + 1000}, "the score did not move with the lock")
        rig.expect(not state.strays, f"keys with a TTL that holds no lease: {state.strays}")
    rig.expect(rig.ack("g", "A") == 1, "the holder's ack is refused")
    rig.expect_empty()


def lost_lock(rig: Rig) -> None:
    """B14, B47, FAIL-7: a lock is all there is of a lease; an evicted one frees its group when the lease would end."""
    for group in ("g", "h"):
        rig.publish(group, "m")
    rig.claim("A", visibility_ms=1000)
    kinds = {key.split(b":")[1] for key in rig.admin.keys("*")}
    rig.expect(kinds == {b"q", b"lock", b"ready", b"prio"}, f"a lease is kept in other keys as well: {kinds}")
    rig.evict()
    rig.expect(not rig.state().locks and len(rig.messages("g")) == 1, "it is not the lock alone that was evicted")
    rig.expect(rig.claim("B") == (b"h", b"m"), "the other group does not flow")
    rig.expect(rig.claim("C") is None, "a group whose lock was evicted is delivered before its lease ends")
    rig.expect(rig.ack("g", "A") == 0, "a lease whose lock is gone settles")
    rig.wait(1001)
    rig.expect(rig.claim("D") == (b"g", b"m"), "a group whose lock was evicted is wedged")


CHECKS = [stale_ack, late_settlement, renewal, lost_lock]
CONTROLS = [
    Control(stale_ack, "taken for a success", "ack-without-fence"),
    Control(late_settlement, "ack by a lost lease", "ack-without-fence"),
    Control(late_settlement, "nack by a lost lease", "nack-without-fence"),
    Control(late_settlement, "extend by a lost lease", "extend-without-fence"),
    Control(renewal, "the score did not move", "extend-only-lock"),
    Control(renewal, "the lock did not move", "extend-only-score"),
    Control(
        renewal,
        "keys with a TTL",
        edits={
            "extend": (
                "redis.call('PEXPIRE', lock, px)",
                "redis.call('PEXPIRE', lock, px) redis.call('PEXPIRE', prio, px)",
            )
        },
    ),
    Control(lost_lock, "delivered before its lease ends", "score-without-px"),
    Control(
        lost_lock,
        "kept in other keys",
        edits={"claim": ("if not best then\n", "redis.call('INCR', prefix .. ':inflight')\nif not best then\n")},
    ),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_leases(judge: Judge, check: Check) -> None:
    """B01, B03, B11, B12, B14, B47: what a lost, late or renewed lease can do, and what it cannot."""
    judge.passes(check)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_leases_undone(judge: Judge, control: Control) -> None:
    """Each of these checks finds the scripts that get it wrong."""
    judge.convicts(control)


def same_worker_twice(server: BaseServer) -> None:
    """B02: one worker claims a message twice; its first lease is refused."""
    queue = RedisTransport(server.client())
    queue.publish("g", "1")
    first = queue.claim(visibility=0.05, worker_id="w1")
    server.clock.advance(51)
    second = queue.claim(worker_id="w1")
    assert first is not None
    assert second is not None
    assert second.payload == first.payload
    assert queue.ack(first) is False, "the first lease of the same worker settles"
    assert queue.ack(second) is True


def test_one_worker_claims_twice(server: BaseServer) -> None:
    """B02: tokens are unique per claim, so the first of two leases of one worker no longer settles."""
    server.clock.prefixes = ["redisq"]
    same_worker_twice(server)


def test_a_token_per_worker_is_seen(server: BaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check fails where the token is the worker's and not the claim's."""
    server.clock.prefixes = ["redisq"]
    monkeypatch.setattr(redisq.scripts, "new_token", lambda worker_id: worker_id)
    with pytest.raises(AssertionError, match="the first lease of the same worker settles"):
        same_worker_twice(server)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_lost_is_not_a_broken_connection(server: BaseServer, kind: str) -> None:
    """B10: a lost lease is None from extend, a cut connection is its error; the lease is still held and renewed."""
    warm(server)
    with Proxy(server.url) as proxy, transport(kind, proxy.url) as queue:
        queue.publish("g", "m")
        lease = queue.claim(visibility=30)
        for cut in (proxy.lose_request, proxy.lose_reply):
            cut()
            with pytest.raises(redis.ConnectionError):
                queue.extend(lease)
            assert queue.extend(lease) is not None
        assert queue.ack(lease) is True
        assert queue.extend(lease) is None


def test_close_leaves_a_lease(server: BaseServer) -> None:
    """B15: closing a queue leaves its leases until they end, as documented; a nack before it gives one back."""
    server.clock.prefixes = ["redisq"]
    with RedisTransport.from_url(server.url) as queue:
        queue.publish("kept", "m")
        queue.publish("returned", "m")
        kept, returned = queue.claim_many(2, visibility=30)
        assert queue.nack(returned)
    other = RedisTransport(server.client())
    assert [lease.group for lease in other.claim_many(2)] == ["returned"]
    server.clock.advance(30_001)
    assert other.ack(kept) is False
    assert other.claim() is not None


class Torn:
    """A worker that looks for a group in one round trip and takes it in the next: what scripts are there to avoid."""

    def __init__(self, client: Any, looked: threading.Barrier) -> None:
        self.client = client
        self.looked = looked

    def claim(self) -> str | None:
        """The group taken."""
        ready, lock = "redisq:ready:0", "redisq:lock:"
        due = [group.decode() for group in self.client.zrangebyscore(ready, "-inf", 0, start=0, num=8)]
        free = [group for group in due if not self.client.exists(lock + group)]
        self.looked.wait()
        if free:
            self.client.set(lock + free[0], "token", px=30_000)
            self.client.zadd(ready, {free[0]: 30_000})
        return free[0] if free else None


WORKERS, DUE = 8, 200


def claimed_at_once(server: BaseServer, claim: Callable[[Any], str | None]) -> Counter[str]:
    """How often each due group was claimed by workers that claim at once, more often than there are groups."""
    prepare = RedisTransport(server.client())
    prepare.publish_many([(f"g{number:03}", "m") for number in range(DUE)])
    got: list[str] = []
    start = threading.Barrier(WORKERS)

    def work(client: Any) -> None:
        start.wait()
        claims = [claim(client) for _ in range(DUE // WORKERS + 1)]
        got.extend(group for group in claims if group is not None)

    threads = [threading.Thread(target=work, args=(server.client(),)) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(got)


def test_claims_at_once_share_no_group(server: BaseServer) -> None:
    """B33, CLAIM-7: of many workers that claim at the same moment each gets another group, and all are claimed."""

    def claim(client: Any) -> str | None:
        lease = RedisTransport(client).claim()
        return lease.group if lease else None

    assert claimed_at_once(server, claim) == Counter({f"g{number:03}": 1 for number in range(DUE)})


def test_claims_in_two_round_trips_are_seen(server: BaseServer) -> None:
    """The same count finds workers that look first and take later."""
    looked = threading.Barrier(WORKERS)
    counts = claimed_at_once(server, lambda client: Torn(client, looked).claim())
    assert max(counts.values()) > 1
