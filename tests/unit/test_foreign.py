"""Foreign writes on the model: each does to the keys what its name says."""

from __future__ import annotations

from model.state import Lock
from tests.unit.traces import after

LEASED = '1000 publish group="g" payload="m" -> 1\n1000 claim token="A" visibility_ms=100 -> group="g" payload="m"\n'


def test_locks() -> None:
    """A lock loses its TTL, its type or itself; in the millisecond of its deadline nothing is left to be broken."""
    assert after(LEASED + '1000 persist-lock group="g"').locks == {b"g": Lock(b"A", None)}
    assert after(LEASED + '1000 persist-lock group="h"').locks == {b"g": Lock(b"A", 1100)}
    assert after(LEASED + '1000 break-lock group="g"').locks == {b"g": Lock(None, 1100)}
    assert after('1000 break-lock group="g"').locks == {b"g": Lock(None, None)}
    assert after(LEASED + '1100 break-lock group="g"').locks == {}
    assert after(LEASED + '1000 drop-lock group="g"').locks == {}


def test_the_other_keys() -> None:
    """Lists, fields and entries are dropped, broken and set."""
    state = after(
        LEASED
        + '1000 break-list group="g"\n1000 set-prio group="g" value="x"\n1000 set-entry group="g" tier=3 score_ms=7'
    )
    assert (state.queues, state.prio, state.ready[3]) == ({b"g": None}, {b"g": b"x"}, {b"g": 7})
    state = after(LEASED + '1000 drop-list group="g"\n1000 drop-prio group="g"\n1000 drop-entry group="g" tier=0')
    assert (state.queues, state.prio, state.ready[0]) == ({}, {}, {})


def test_crowds() -> None:
    """A crowd comes with messages and leases or without, starts anew, and leaves nothing behind."""
    state = after("1000 crowd size=2 tier=1 score_ms=5 visibility_ms=0 messages=2")
    assert (state.queues[b"crowd1-01"], state.locks, state.ready[1][b"crowd1-00"]) == ((b"0", b"1"), {}, 5)
    twice = "1000 crowd size=1 tier=1 score_ms=5 visibility_ms=9 messages=1\n"
    assert after(twice * 2).queues == {b"crowd1-00": (b"0",)}
    assert after(twice + "1000 disperse size=1 tier=1").to_json() == after("1000 wait").to_json()
