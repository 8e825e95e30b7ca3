"""The model of extend, clause by clause."""

from __future__ import annotations

from tests.unit.traces import after

CLAIMED = '1000 publish group="g" -> 1\n1000 claim token="A" visibility_ms=100 -> group="g" payload=""\n'


def test_moves_lock_and_score_together() -> None:
    """Both end px from now; a client's now moves the score alone, as its lock is the server's."""
    state = after(CLAIMED + '1050 extend group="g" token="A" visibility_ms=500 -> 1')
    assert (state.locks[b"g"].deadline_ms, state.ready[0][b"g"]) == (1550, 1550)
    state = after(CLAIMED + '1050 extend group="g" token="A" visibility_ms=500 now_ms=900 -> 1')
    assert (state.locks[b"g"].deadline_ms, state.ready[0][b"g"]) == (1550, 1400)


def test_only_while_the_lease_lives() -> None:
    """In the millisecond of the deadline it is renewed, in the next it is lost."""
    after(CLAIMED + '1100 extend group="g" token="A" -> 1')
    after(CLAIMED + '1101 extend group="g" token="A" -> 0')
    after(CLAIMED + '1000 extend group="g" token="B" -> 0')
