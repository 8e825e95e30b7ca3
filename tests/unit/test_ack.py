"""The model of ack, clause by clause."""

from __future__ import annotations

import pytest

from tests.unit.traces import after

CLAIMED = '1000 publish group="g" payload="1" -> 1\n1000 claim token="A" -> group="g" payload="1"\n'


def test_a_drained_group_leaves_no_key() -> None:
    """After the last ack there is no list, entry, field or lock; on a list that is gone likewise."""
    for lost in ("", '1000 drop-list group="g"\n'):
        state = after(CLAIMED + lost + '1000 ack group="g" token="A" -> 1\n1000 ack group="g" token="A" -> 0')
        assert (state.queues, state.prio, state.locks, state.ready) == ({}, {}, {}, ({},) * 5)


def test_with_messages_left_the_group_is_due_at_now() -> None:
    """The head goes, the group waits behind those that are due; a client's now counts where it is given."""
    state = after(CLAIMED + '1000 publish group="g" payload="2" -> 2\n1200 ack group="g" token="A" now_ms=1100 -> 1')
    assert (state.queues, state.ready[0]) == ({b"g": (b"2",)}, {b"g": 1100})


def test_a_list_of_another_type_changes_nothing() -> None:
    """It is an error, and the lock stays."""
    state = after(CLAIMED + '1000 break-list group="g"\n1000 ack group="g" token="A" -> WRONGTYPE')
    assert state.locks[b"g"].value == b"A"


@pytest.mark.parametrize(
    ("meddle", "call", "reply"),
    [
        ('drop-lock group="g"', 'token="A"', "0"),
        ("wait", 'token="B"', "0"),
        ('break-lock group="g"', 'token="A"', "WRONGTYPE"),
        ("wait", 'token="parked"', "REDISQ_BADARG token"),
        ("wait", 'token="A" now_ms="1.0"', "REDISQ_BADARG now"),
    ],
)
def test_the_fence_changes_nothing(meddle: str, call: str, reply: str) -> None:
    """Without the lease, or with a bad argument, the call ends and nothing is written."""
    before = CLAIMED + f"1000 {meddle}\n"
    assert after(before + f'1000 ack group="g" {call} -> {reply}') == after(before)


@pytest.mark.parametrize(("time_ms", "reply"), [(30999, 1), (31000, 1), (31001, 0)])
def test_the_lease_holds_through_its_deadline(time_ms: int, reply: int) -> None:
    """It can be settled in the millisecond of its deadline and not after."""
    after(CLAIMED + f'{time_ms} ack group="g" token="A" -> {reply}')


def test_arguments_are_counted() -> None:
    """A call with too few arguments is refused."""
    after('1000 ack argv=["redisq", "g", "A"] -> REDISQ_BADARG ARGV')


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
    state = after(f'{lines}1000 {meddle}\n1000 ack group="g" token="A" now_ms=server -> 1')
    assert (state.prio, state.ready[tier]) == ({b"g": b"%d" % tier}, {b"g": 1000})
