"""A server whose own clock is far away: how far it can be asked for it."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from redisq import Lease, RedisTransport
from tests.faults.topology import another
from tests.support.running import BaseServer

LAST_MS = 2**48  # in August 10889
CRASHING = ("7.4.1", "8.0.2")  # those seen to; Redis has fields that expire, at instants of 48 bits, since 7.4


def works(client: Any) -> bool:
    """Whether a message goes through a queue; False if the server ends meanwhile."""
    queue = RedisTransport(client)
    try:
        queue.publish("g", "m")
        lease = queue.claim()
        assert isinstance(lease, Lease)
        return queue.ack(lease)
    except redis.ConnectionError:
        return False


def test_a_clock_beyond_48_bits(server: BaseServer) -> None:
    """TIME-6: a message goes through to the end of fifteen digits; Redis 7.4 and 8.0 crash 48 bits after 1970."""
    with another(server) as far:
        if not far.clock.exact:
            pytest.skip(f"{far.name}: its clock cannot be set: {far.clock.reason}")
        for now_ms in (LAST_MS, LAST_MS + 1, 10**15 - 30_001):
            far.clock.set_ms(now_ms)
            crashes = far.version in CRASHING and now_ms > LAST_MS
            assert works(far.client(retry=None)) is not crashes, now_ms
            if crashes:
                assert "BUG REPORT" in far.log_tail(1000)
                return
