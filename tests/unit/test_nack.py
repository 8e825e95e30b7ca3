"""The model of nack, clause by clause."""

from __future__ import annotations

from model.invariants import parked_groups
from tests.unit.traces import after

CLAIMED = '1000 publish group="g" payload="1" priority=2 -> 1\n1000 claim token="A" -> group="g" payload="1"\n'


def test_at_once_and_parked() -> None:
    """Without a delay the group is free at score 0; with one it is parked until now + delay, its token dead."""
    state = after(CLAIMED + '1000 nack group="g" token="A" -> 1')
    assert (state.ready[2], state.locks) == ({b"g": 0}, {})
    state = after(CLAIMED + '1000 nack group="g" token="A" delay_ms=50 -> 1\n1000 nack group="g" token="A" -> 0')
    assert (state.ready[2], parked_groups(state)) == ({b"g": 1050}, [b"g"])


def test_puts_back_what_was_lost() -> None:
    """A missing entry and a missing field come back, in the lowest tier that knows the group, else in tier 0."""
    lost = '1000 drop-prio group="g"\n1000 drop-entry group="g" tier=2\n'
    state = after(CLAIMED + lost + '1000 nack group="g" token="A" -> 1')
    assert (state.ready[0], state.prio) == ({b"g": 0}, {b"g": b"0"})
    state = after(CLAIMED + lost + '1000 set-entry group="g" tier=3 score_ms=1\n1000 nack group="g" token="A" -> 1')
    assert (state.ready[3], state.prio) == ({b"g": 0}, {b"g": b"3"})
