"""The model of publish, clause by clause."""

from __future__ import annotations

import pytest

from model.state import State
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


@pytest.mark.parametrize(("score", "starts_at"), [("", 0), ("score_ms=server", 1000), ("score_ms=700", 700)])
def test_score_is_where_a_new_group_starts(score: str, starts_at: int) -> None:
    """First by default, else at the server's clock or at the client's."""
    state = after(f'1000 publish group="g" {score} -> 1')
    assert state.ready[0] == {b"g": starts_at}


def test_four_arguments_start_a_group_first() -> None:
    """Without the fifth argument a new group has score 0."""
    state = after('1000 publish argv=["redisq", "g", "m", "2"] -> 1')
    assert (state.ready[2], state.queues) == ({b"g": 0}, {b"g": (b"m",)})


@pytest.mark.parametrize(("priority", "tier"), [(-10, 0), (-1, 0), (0, 0), (3, 3), (4, 4), (5, 4), (10, 4)])
def test_priorities_are_clamped(priority: int, tier: int) -> None:
    """Every integer names one of the five tiers."""
    assert after(f'1000 publish group="g" priority={priority} -> 1').prio == {b"g": b"%d" % tier}


@pytest.mark.parametrize(
    "spoil", ['drop-prio group="g"', 'set-prio group="g" value="5"', 'set-prio group="g" value=""']
)
def test_a_lost_field_is_found_again_by_the_entry(spoil: str) -> None:
    """A group with messages stays in the lowest tier that knows it, at its score."""
    state = after(
        '1000 publish group="g" priority=3 score_ms=700 -> 1\n1000 set-entry group="g" tier=4 score_ms=1\n'
        f'1000 {spoil}\n1000 publish group="g" priority=1 score_ms=900 -> 2'
    )
    assert (state.prio, state.ready[1], state.ready[3]) == ({b"g": b"3"}, {}, {b"g": 700})


def test_a_lost_field_that_no_tier_knows_takes_the_priority() -> None:
    """With field and entry lost, the group starts in the tier of this publish at its score."""
    state = after(
        '1000 publish group="g" priority=3 -> 1\n1000 drop-prio group="g"\n1000 drop-entry group="g" tier=3\n'
        '1000 publish group="g" priority=1 score_ms=900 -> 2'
    )
    assert (state.prio, state.ready[1], state.ready[3]) == ({b"g": b"1"}, {b"g": 900}, {})


def test_an_empty_group_takes_the_priority_whatever_knows_it() -> None:
    """Without messages the group is new, and a stale entry in another tier stays where it is."""
    state = after(
        '1000 set-entry group="g" tier=3 score_ms=5\n1000 publish group="g" priority=1 score_ms=900 -> 1',
    )
    assert (state.prio, state.ready[1], state.ready[3]) == ({b"g": b"1"}, {b"g": 900}, {b"g": 5})


@pytest.mark.parametrize(
    ("arguments", "bad"),
    [
        ('prefix="" group="g"', "prefix"),
        ('group=""', "group"),
        ('group="g" priority="-0"', "priority"),
        ('group="g" priority=""', "priority"),
        ('group="g" score_ms="1e3"', "score"),
        ('group="g" score_ms="0123"', "score"),
        ('group="g" score_ms=1000000000000000', "score"),
        ('group="" priority="+5" score_ms=-1', "group priority score"),
        ('argv=["redisq", "g", "m"]', "ARGV"),
        ('argv=["redisq", "g", "m", "0", "0", "0"]', "ARGV"),
        ("argv=[]", "ARGV"),
    ],
)
def test_bad_arguments_write_nothing(arguments: str, bad: str) -> None:
    """Each argument that is not of its form is named, and nothing is stored."""
    assert after(f"0 publish {arguments} -> REDISQ_BADARG {bad}") == State()


def test_forms_at_their_limits() -> None:
    """Fifteen digits of a score and sixteen of a priority are admitted, and so is any payload."""
    state = after('1000 publish group="\\n" payload="" priority=1000000000000000 score_ms=999999999999999 -> 1\n')
    assert (state.ready[4], state.queues) == ({b"\n": 10**15 - 1}, {b"\n": (b"",)})


def test_a_known_group_keeps_its_score() -> None:
    """An entry that is there stays where it is, with a valid field and with a lost one."""
    lines = '1000 publish group="g" score_ms=700 -> 1\n1000 publish group="g" score_ms=900 -> 2\n'
    assert after(lines).ready[0] == {b"g": 700}
    assert after(lines + '1000 drop-prio group="g"\n1000 publish group="g" score_ms=1 -> 3').ready[0] == {b"g": 700}
