"""The model of nack, clause by clause."""

from __future__ import annotations

import pytest

from model.invariants import parked_groups
from model.state import Lock
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


@pytest.mark.parametrize(
    ("meddle", "call", "reply"),
    [
        ('drop-lock group="g"', 'token="A"', "0"),
        ("wait", 'token="B"', "0"),
        ('break-lock group="g"', 'token="A"', "WRONGTYPE"),
        ("wait", 'token="parked"', "REDISQ_BADARG token"),
        ("wait", 'token="A" now_ms="1.0"', "REDISQ_BADARG now"),
        ("wait", 'token="A" delay_ms="-0"', "REDISQ_BADARG delay"),
    ],
)
def test_the_fence_changes_nothing(meddle: str, call: str, reply: str) -> None:
    """Without the lease, or with a bad argument, the call ends and nothing is written."""
    before = CLAIMED + f"1000 {meddle}\n"
    assert after(before + f'1000 nack group="g" {call} -> {reply}') == after(before)


@pytest.mark.parametrize(("time_ms", "reply"), [(30999, 1), (31000, 1), (31001, 0)])
def test_the_lease_holds_through_its_deadline(time_ms: int, reply: int) -> None:
    """It can be settled in the millisecond of its deadline and not after."""
    after(CLAIMED + f'{time_ms} nack group="g" token="A" -> {reply}')


def test_arguments_are_counted() -> None:
    """A call with too few arguments is refused."""
    after('1000 nack argv=["redisq", "g", "A"] -> REDISQ_BADARG ARGV')


@pytest.mark.parametrize(
    ("meddle", "tier"),
    [
        ('drop-prio group="g"', 3),
        ('set-prio group="g" value="03"', 3),
        ('set-entry group="g" tier=1 score_ms=9\n1000 drop-prio group="g"', 1),
        ('drop-prio group="g"\n1000 drop-entry group="g" tier=3', 0),
        ('drop-entry group="g" tier=3', 3),
    ],
)
def test_a_lost_field_or_entry_is_put_back(meddle: str, tier: int) -> None:
    """In the tier of the field, else the lowest that knows the group, else 0."""
    lines = '1000 publish group="g" priority=3 -> 1\n1000 publish group="g" -> 2\n'
    lines += '1000 claim token="A" -> group="g" payload=""\n'
    state = after(f'{lines}1000 {meddle}\n1000 nack group="g" token="A" delay_ms=500 -> 1')
    assert (state.prio, state.ready[tier]) == ({b"g": b"%d" % tier}, {b"g": 1500})


def test_a_list_that_is_gone_leaves_a_stale_entry() -> None:
    """The call answers 1 all the same, and the next claim that meets the entry removes it."""
    state = after(
        CLAIMED + '1000 drop-list group="g"\n1000 nack group="g" token="A" delay_ms=0 -> 1\n2000 claim token="B" -> nil'
    )
    assert (state.queues, state.prio, state.ready) == ({}, {}, ({},) * 5)


def test_without_delay_the_message_is_retried_first() -> None:
    """The lock is gone, the score is 0, and the same message comes before any group that waits."""
    state = after(CLAIMED + '1200 nack group="g" token="A" now_ms=1100 -> 1')
    assert (state.locks, state.ready[2], len(state.queues[b"g"] or ())) == ({}, {b"g": 0}, 1)
    after(
        CLAIMED + '1000 publish group="a" score_ms=1 -> 1\n1000 nack group="g" token="A" -> 1\n'
        '1000 claim token="B" -> group="g" payload="1"'
    )


def test_a_delay_parks_the_group_until_it_is_over() -> None:
    """The lock says parked by the server's clock, the score goes by the given one, and no token settles it."""
    state = after(CLAIMED + '1000 nack group="g" token="A" now_ms=900 delay_ms=500 -> 1')
    assert (state.locks, state.ready[2]) == ({b"g": Lock(b"parked", 1500)}, {b"g": 1400})
    after(
        CLAIMED + '1000 nack group="g" token="A" delay_ms=500 -> 1\n1000 nack group="g" token="A" -> 0\n'
        '1500 claim token="B" -> nil\n1501 claim token="B" -> group="g" payload="1"'
    )
