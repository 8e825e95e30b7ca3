"""The model of extend, clause by clause."""

from __future__ import annotations

import pytest

from model.state import Lock
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


@pytest.mark.parametrize(
    ("meddle", "call", "reply"),
    [
        ('drop-lock group="g"', 'token="A"', "0"),
        ("wait", 'token="B"', "0"),
        ('break-lock group="g"', 'token="A"', "WRONGTYPE"),
        ("wait", 'token="parked"', "REDISQ_BADARG token"),
        ("wait", 'token="A" now_ms="1.0"', "REDISQ_BADARG now"),
        ("wait", 'token="A" visibility_ms=0', "REDISQ_BADARG px"),
    ],
)
def test_the_fence_changes_nothing(meddle: str, call: str, reply: str) -> None:
    """Without the lease, or with a bad argument, the call ends and nothing is written."""
    before = CLAIMED + f"1000 {meddle}\n"
    assert after(before + f'1000 extend group="g" {call} -> {reply}') == after(before)


@pytest.mark.parametrize(("time_ms", "reply"), [(1099, 1), (1100, 1), (1101, 0)])
def test_the_lease_holds_through_its_deadline(time_ms: int, reply: int) -> None:
    """It can be renewed in the millisecond of its deadline and not after."""
    after(CLAIMED + f'{time_ms} extend group="g" token="A" -> {reply}')


def test_arguments_are_counted() -> None:
    """A call with too few arguments is refused."""
    after('1000 extend argv=["redisq", "g", "A"] -> REDISQ_BADARG ARGV')


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
    state = after(f'{lines}1000 {meddle}\n1000 extend group="g" token="A" visibility_ms=500 -> 1')
    assert (state.prio, state.ready[tier]) == ({b"g": b"%d" % tier}, {b"g": 1500})


def test_a_list_that_is_gone_leaves_a_stale_entry() -> None:
    """The call answers 1 all the same, and the next claim that meets the entry removes it."""
    state = after(
        CLAIMED
        + '1000 drop-list group="g"\n1000 extend group="g" token="A" visibility_ms=9 -> 1\n2000 claim token="B" -> nil'
    )
    assert (state.queues, state.prio, state.ready) == ({}, {}, ({},) * 5)


def test_lock_and_score_move_together_by_their_clocks() -> None:
    """The lock ends px after the server's clock, the score px after the given one."""
    state = after(CLAIMED + '1050 extend group="g" token="A" now_ms=1040 visibility_ms=500 -> 1')
    assert (state.locks, state.ready[0]) == ({b"g": Lock(b"A", 1550)}, {b"g": 1540})
