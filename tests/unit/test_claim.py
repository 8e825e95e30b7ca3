"""The model of claim, clause by clause."""

from __future__ import annotations

import pytest

from model.state import Lock
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


G = '1000 publish group="g" payload="m" -> 1\n'
LEASED = G + '1000 claim token="A" visibility_ms=500 -> group="g" payload="m"\n'


def test_a_claim_leases_the_group_of_the_oldest_message() -> None:
    """The first message comes back and stays, and lock and score end with the lease."""
    state = after(
        G + '1000 publish group="g" payload="n" -> 2\n1000 claim token="A" visibility_ms=500 -> group="g" payload="m"'
    )
    assert state.queues == {b"g": (b"m", b"n")}
    assert (state.locks, state.ready[0]) == ({b"g": Lock(b"A", 1500)}, {b"g": 1500})


@pytest.mark.parametrize(("time_ms", "reply"), [(1499, "nil"), (1500, "nil"), (1501, 'group="g" payload="m"')])
def test_a_lease_lasts_through_the_millisecond_of_its_deadline(time_ms: int, reply: str) -> None:
    """The message is delivered again one millisecond after the deadline, not in it."""
    after(LEASED + f'{time_ms} claim token="B" -> {reply}')


def test_a_client_clock_decides_what_is_due() -> None:
    """It sets the window and the new score, and the lock runs by the server's clock."""
    lines = '1000 publish group="g" payload="m" score_ms=800 -> 1\n1000 claim token="A" now_ms=799 -> nil\n'
    state = after(lines + '1000 claim token="A" now_ms=800 visibility_ms=500 -> group="g" payload="m"')
    assert (state.locks, state.ready[0]) == ({b"g": Lock(b"A", 1500)}, {b"g": 1300})


def test_a_client_clock_leaves_the_deadlines_of_others() -> None:
    """Locked groups are looked past in full pages, and neither lock nor score of any changes."""
    crowd = CROWD.format(size=5) + FREE
    state = after(crowd + '1000 claim token="t" candidates=2 now_ms=900000 -> group="z" payload="m"')
    assert {state.ready[0][b"crowd0-%02d" % number] for number in range(5)} == {500}


@pytest.mark.parametrize(("size", "first"), [(17, 'group="z" payload="m"'), (18, "nil")])
def test_page_budget_of_the_servers_clock(size: int, first: str) -> None:
    """Beyond the head and 17 pages of one a claim finds nothing, and what it repaired lets the next one through."""
    lines = CROWD.format(size=size) + FREE + f'1000 claim token="t" candidates=1 -> {first}\n'
    state = after(lines + ('1000 claim token="u" -> group="z" payload="m"' if first == "nil" else ""))
    assert state.ready[0][b"crowd0-00"] == 500
    assert {state.ready[0][b"crowd0-%02d" % number] for number in range(1, size)} == {2001}


@pytest.mark.parametrize(("size", "reply"), [(1, 'group="z" payload="m"'), (2, "nil")])
def test_every_tier_gets_its_first_page(size: int, reply: str) -> None:
    """With the shared budget spent in tier 0, tier 1 has its head and one page, and no more."""
    after(
        CROWD.format(size=18)
        + f"1000 crowd size={size} tier=1 score_ms=500 visibility_ms=1000 messages=1\n"
        + FREE.replace("score_ms", "priority=1 score_ms")
        + f'1000 claim token="t" candidates=1 -> {reply}'
    )


def test_the_lowest_score_wins_then_the_tier_then_the_bytes() -> None:
    """Scores come before tiers, and within a tier equal scores go by the bytes of the group."""
    state = after(
        '1000 publish group="b" score_ms=10 -> 1\n1000 publish group="a" score_ms=10 -> 1\n'
        '1000 publish group="y" score_ms=10 priority=2 -> 1\n1000 publish group="x" score_ms=9 priority=4 -> 1\n'
        '1000 claim token="1" -> group="x" payload=""\n1000 claim token="2" -> group="a" payload=""\n'
        '1000 claim token="3" -> group="b" payload=""\n1000 claim token="4" -> group="y" payload=""\n'
        '1000 claim token="5" -> nil'
    )
    assert len(state.locks) == 4


@pytest.mark.parametrize(("floor", "group"), [(-3, "a"), (0, "a"), (1, "b"), (4, "b"), (99, "b")])
def test_min_priority_is_clamped(floor: int, group: str) -> None:
    """Below the lowest tier it is 0, above the highest 4."""
    after(
        '1000 publish group="a" -> 1\n1000 publish group="b" priority=4 -> 1\n'
        f'1000 claim token="t" min_priority={floor} -> group="{group}" payload=""'
    )


def test_stale_entries_are_removed_on_the_way() -> None:
    """Entries whose list is gone leave with their fields, at the head and within a page."""
    state = after(
        "1000 crowd size=5 tier=2 score_ms=5 visibility_ms=0 messages=0\n"
        + FREE.replace("score_ms", "priority=2 score_ms")
        + '1000 claim token="t" candidates=2 visibility_ms=500 -> group="z" payload="m"'
    )
    assert (state.ready[2], state.prio) == ({b"z": 1500}, {b"z": b"2"})


def test_a_broken_entry_leaves_its_key() -> None:
    """Of a list of another type only the entry and the field go."""
    state = after(G + '1000 break-list group="g"\n1000 claim token="t" -> nil')
    assert (state.queues, state.ready[0], state.prio) == ({b"g": None}, {}, {})


def test_what_is_not_below_the_best_is_not_looked_at() -> None:
    """A stale entry of a higher tier stays while its score is no lower than the best so far."""
    lines = FREE + '1000 set-entry group="s" tier=3 score_ms={}\n1000 claim token="t" -> group="z" payload="m"'
    assert after(lines.format(600)).ready[3] == {b"s": 600}
    assert after(lines.format(599)).ready[3] == {}


def test_a_lock_without_ttl_ends_with_its_score() -> None:
    """A persisted lock blocks nothing once the group is due, and is replaced."""
    state = after(
        LEASED + '1000 persist-lock group="g"\n1499 claim token="B" -> nil\n'
        '1500 claim token="B" visibility_ms=500 -> group="g" payload="m"'
    )
    assert state.locks == {b"g": Lock(b"B", 2000)}


def test_a_lock_of_another_type_is_a_lock() -> None:
    """Its TTL decides; without one it is free, and the claim replaces it."""
    after(
        LEASED + '1000 break-lock group="g"\n1500 claim token="B" -> nil\n1501 claim token="B" -> group="g" payload="m"'
    )
    state = after(G + '1000 break-lock group="g"\n1000 claim token="B" -> group="g" payload="m"')
    assert state.locks == {b"g": Lock(b"B", 31000)}


@pytest.mark.parametrize(
    ("arguments", "bad"),
    [
        ('token=""', "token"),
        ('token="parked"', "token"),
        ('token="t" now_ms=" 5"', "now"),
        ('token="t" visibility_ms=0', "px"),
        ('token="t" visibility_ms=""', "px"),
        ('token="t" candidates=0', "K"),
        ('token="t" candidates=100', "K"),
        ('token="t" min_priority="0x1"', "min_priority"),
        ('argv=["redisq", "", "1", "t", "1"]', "ARGV"),
    ],
)
def test_bad_arguments_lease_nothing(arguments: str, bad: str) -> None:
    """Each argument that is not of its form is named, and the group stays free."""
    assert after(G + f"1000 claim {arguments} -> REDISQ_BADARG {bad}") == after(G)
