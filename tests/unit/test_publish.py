"""The model of publish, clause by clause."""

from __future__ import annotations

from tests.unit.traces import after


def test_first_publish_fixes_the_tier() -> None:
    """The first priority counts, clamped, until the group drains."""
    state = after('1000 publish group="g" priority=9 -> 1\n1000 publish group="g" priority=1 -> 2')
    assert state.ready[4] == {b"g": 0}
    assert state.prio == {b"g": b"4"}


def test_a_lost_entry_comes_back_first() -> None:
    """A known group whose entry was lost gets it back at score 0; one that has it keeps its score."""
    state = after(
        '1000 publish group="g" score_ms=700 -> 1\n1000 publish group="g" -> 2\n'
        '1000 drop-entry group="g" tier=0\n1000 publish group="g" score_ms=900 -> 3'
    )
    assert state.ready[0] == {b"g": 0}


def test_a_list_of_another_type_stores_nothing() -> None:
    """A known group leaves no more than its entry, a new one nothing."""
    state = after('1000 break-list group="g"\n1000 publish group="g" -> WRONGTYPE')
    assert (state.prio, state.ready[0]) == ({}, {})
    state = after('1000 set-prio group="g" value="1"\n1000 break-list group="g"\n1000 publish group="g" -> WRONGTYPE')
    assert state.ready[1] == {b"g": 0}
