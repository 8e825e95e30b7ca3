"""The model of claim, clause by clause."""

from __future__ import annotations

import pytest

from tests.unit.traces import after

CROWD = "1000 crowd size={size} tier=0 score_ms=500 visibility_ms=1000 messages=1\n"
FREE = '1000 publish group="z" payload="m" score_ms=600 -> 1\n'


@pytest.mark.parametrize(("size", "reply"), [(18, 'group="z" payload="m"'), (19, "nil")])
def test_page_budget_of_a_client_clock(size: int, reply: str) -> None:
    """The head, the first page and 16 further ones are looked at, and no more: here pages of one."""
    size -= 1  # the free group itself takes the last place
    after(CROWD.format(size=size) + FREE + f'1000 claim token="t" candidates=1 now_ms=1000 -> {reply}')


def test_repairs_full_pages_only_and_never_the_head() -> None:
    """With three locked entries and pages of two, the head stays where it is and the page moves to its locks' end."""
    state = after(CROWD.format(size=3) + '1000 claim token="t" candidates=2 -> nil')
    assert state.ready[0] == {b"crowd0-00": 500, b"crowd0-01": 2001, b"crowd0-02": 2001}
    state = after(CROWD.format(size=2) + '1000 claim token="t" candidates=2 -> nil')
    assert set(state.ready[0].values()) == {500}


def test_min_priority_and_ties() -> None:
    """Only tiers at or above the floor are served; of equal scores the lower tier wins."""
    lines = '1000 publish group="a" payload="1" priority=3 -> 1\n1000 publish group="b" payload="2" priority=1 -> 1\n'
    after(lines + '1000 claim token="t" min_priority=2 -> group="a" payload="1"')
    after(lines + '1000 claim token="t" -> group="b" payload="2"')


def test_a_clock_that_steps_back_revives_nothing() -> None:
    """A lock that expired is gone when the clock goes back, and a score of the later clock hides its group."""
    state = after(
        '1000 publish group="g" -> 1\n1000 claim token="A" visibility_ms=100 -> group="g" payload=""\n'
        '1101 wait\n1050 claim token="B" -> nil\n1100 claim token="B" -> group="g" payload=""'
    )
    assert state.locks[b"g"].value == b"B"
