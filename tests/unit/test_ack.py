"""The model of ack, clause by clause."""

from __future__ import annotations

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
