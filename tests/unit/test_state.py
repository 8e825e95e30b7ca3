"""The model's state and steps: time, purity, prefixes, and foreign writes."""

from __future__ import annotations

import copy

import pytest

from model.notation import read_trace
from model.run import World, step
from model.state import Lock, State
from tests.unit.traces import after

LEASED = '1000 publish group="g" payload="m" -> 1\n1000 claim token="A" visibility_ms=500 -> group="g" payload="m"\n'

EVERYTHING = (
    LEASED
    + """
1000 publish group="g" payload="n" -> 2
1000 extend group="g" token="A" visibility_ms=700 -> 1
1000 crowd size=3 tier=0 score_ms=500 visibility_ms=1000 messages=2
1000 claim token="B" candidates=1 -> nil
1000 disperse size=3 tier=0
1000 ack group="g" token="A" -> 1
1000 claim token="C" -> group="g" payload="n"
1000 nack group="g" token="C" delay_ms=5 -> 1
1006 claim token="D" -> group="g" payload="n"
1006 set-prio group="g" value="9"
1006 set-entry group="g" tier=2 score_ms=1
1006 persist-lock group="g"
1006 drop-entry group="g" tier=0
1006 drop-prio group="g"
1006 break-lock group="g"
1006 drop-lock group="g"
1006 break-list group="g"
1006 drop-list group="g"
1006 claim token="E" -> nil
"""
)


def test_no_step_changes_the_state_it_is_given() -> None:
    """Scripts and foreign writes return a new state, and the old one stays as it was."""
    state = State()
    for operation, _ in read_trace(EVERYTHING.splitlines()):
        state = state.at(operation.time_ms)
        before = copy.deepcopy(state)
        new, _ = step(state, operation)
        assert state == before
        state = new
    assert state == after(EVERYTHING) == State(now_ms=1006)


def test_prefixes_are_apart() -> None:
    """A step in one prefix is seen in no other, and all have one clock."""
    world = World()
    for operation, _ in read_trace(['5 publish prefix="a" group="g" -> 1', "9 wait"]):
        world, _ = world.step(operation)
    assert world.state(b"b") == State(now_ms=9)
    assert world.state(b"a").queues == {b"g": (b"",)}


@pytest.mark.parametrize(("time_ms", "held"), [(1499, True), (1500, True), (1501, False)])
def test_an_expired_lock_is_seen_by_no_read(time_ms: int, held: bool) -> None:
    """It lives through the millisecond of its deadline, and after that only the raw mapping has it."""
    state = after(LEASED + f"{time_ms} wait")
    assert state.locks == {b"g": Lock(b"A", 1500)}
    assert state.lock(b"g") == state.expired().locks.get(b"g") == (Lock(b"A", 1500) if held else None)


def test_a_clock_that_steps_back_finds_expired_locks_gone() -> None:
    """Live locks stay, and those past their deadline do not come back."""
    assert after(LEASED + "1500 wait\n1200 wait").locks == {b"g": Lock(b"A", 1500)}
    assert after(LEASED + "1501 wait\n1200 wait").locks == {}


def test_json_is_what_a_reader_would_see() -> None:
    """Keys of another type and missing TTLs are null, lists are sorted, and an expired lock is absent."""
    state = after(
        '0 publish group="b" payload="m" -> 1\n0 claim token="T" visibility_ms=5 -> group="b" payload="m"\n'
        '0 break-list group="a"\n0 break-lock group="a"\n0 set-entry group="a" tier=0 score_ms=9\n'
    )
    b, a = {"utf8": "b"}, {"utf8": "a"}
    locks = [{"group": a, "value": None, "deadline_ms": None}, {"group": b, "value": {"utf8": "T"}, "deadline_ms": 5}]
    assert state.to_json() == {
        "now_ms": 0,
        "queues": [{"group": a, "messages": None}, {"group": b, "messages": [{"utf8": "m"}]}],
        "locks": locks,
        "ready": [[{"group": b, "score_ms": 5}, {"group": a, "score_ms": 9}], [], [], [], []],
        "prio": [{"group": b, "value": {"utf8": "0"}}],
    }
    assert state.at(6).to_json()["locks"] == locks[:1]


@pytest.mark.parametrize(
    ("lines", "lock"),
    [
        ('1500 persist-lock group="g"', Lock(b"A", None)),
        ('1501 persist-lock group="g"', None),
        ('1499 break-lock group="g"', Lock(None, 1500)),
        ('1500 break-lock group="g"', None),
        ('1501 break-lock group="g"', Lock(None, None)),
        ('1000 persist-lock group="g"\n9000 break-lock group="g"', Lock(None, None)),
        ('1000 drop-lock group="g"', None),
    ],
)
def test_foreign_writes_to_a_lock(lines: str, lock: Lock | None) -> None:
    """Persisting needs a lock, and breaking one keeps its TTL where any time is left."""
    assert after(LEASED + lines).lock(b"g") == lock


@pytest.mark.parametrize(
    ("line", "part", "value"),
    [
        ('drop-list group="g"', "queues", {}),
        ('break-list group="g"', "queues", {b"g": None}),
        ('drop-prio group="g"', "prio", {}),
        ('set-prio group="g" value="x"', "prio", {b"g": b"x"}),
        ('drop-entry group="g" tier=0', "ready", ({},) * 5),
        ('set-entry group="g" tier=4 score_ms=7', "ready", ({b"g": 1500}, {}, {}, {}, {b"g": 7})),
    ],
)
def test_foreign_writes_to_one_key(line: str, part: str, value: object) -> None:
    """Each changes its own key, and nothing else."""
    before, state = after(LEASED), after(LEASED + f"1000 {line}")
    for name in ("queues", "locks", "ready", "prio"):
        assert getattr(state, name) == (value if name == part else getattr(before, name))


def test_a_crowd_is_made_anew_and_disperses() -> None:
    """It has its messages, entries, fields and leases, keeps nothing of the one before, and leaves nothing behind."""
    one = "0 crowd size=2 tier=3 score_ms=7 visibility_ms=9 messages=2\n"
    groups = (b"crowd3-00", b"crowd3-01")
    state = after(one)
    assert state.queues == dict.fromkeys(groups, (b"0", b"1"))
    assert state.locks == dict.fromkeys(groups, Lock(b"crowd", 9))
    assert state.ready[3] == dict.fromkeys(groups, 7)
    assert state.prio == dict.fromkeys(groups, b"3")
    state = after(one + "0 crowd size=2 tier=3 score_ms=8 visibility_ms=0 messages=0")
    assert (state.queues, state.locks, state.ready[3]) == ({}, {}, dict.fromkeys(groups, 8))
    assert after(one + "0 disperse size=2 tier=3") == State()
