"""The readable notation: every trace reads back, and what cannot be read is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.notation import difference, quoted, read, unquoted, write, write_operation, write_reply
from model.operation import ARGUMENTS, BYTES, Error, Fault, Malformed, Ok, Operation, Unsupported
from model.state import Lock, State


@given(st.binary())
def test_any_bytes_read_back(data: bytes) -> None:
    """A string of the notation is exactly the bytes it was written for."""
    assert unquoted(quoted(data)) == data
    operation = Operation("publish", 7, {"group": data, "payload": data, "score_ms": None})
    back, reply = read(write(operation, Ok(1)))
    assert (back.to_argv(), reply) == (operation.to_argv(), "1")
    raw = Operation("ack", 7, argv=(data, b"", data))
    assert read(write(raw, Ok(0))) == (raw, "0")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("publish", "TIME OPERATION"),
        ("0 fetch", "no such operation"),
        ('0 ack group="g" token="t" x', "not understood: 'x'"),
        ('0 ack group="\\q" token="t"', "no such escape"),
        ('0 ack group="\u20ac" token="t"', "beyond ASCII"),
        ('0 ack group="g"', "token: ack needs it"),
        ('0 ack group="\\xg1" token="t"', "no such escape"),
    ],
)
def test_what_cannot_be_read_is_said(line: str, said: str) -> None:
    """A line that is wrong raises Malformed with the word that is."""
    with pytest.raises(Malformed, match=said):
        read(line)


def test_every_kind_of_reply() -> None:
    """Each reply has its own words."""
    replies = [Ok(None), Ok(0), Error("REDISQ_BADARG", ("px", "K")), Unsupported("why"), Fault("what")]
    assert [write_reply(r) for r in replies] == ["nil", "0", "REDISQ_BADARG px K", "unsupported: why", "fault: what"]


def test_difference_names_every_key_that_differs() -> None:
    """List, lock, entry, field and stray key, each with what should be there and what is."""
    got = State(
        5,
        {b"g": (b"m",), b"h h": None},
        {b"g": Lock(b"A", None), b"h": Lock(None, 9)},
        ({b"g": 3}, {}, {}, {}, {}),
        {b"g": b"7"},
        (b"x",),
    )
    assert difference(got, got) == []
    assert difference(State(5, {b"g": (b"m",)}), State(5, {b"g": (b"m",), b"h": (b"",)})) == [
        'q:h: expected absent, got [""]'
    ]
    assert difference(State(5), got) == [
        'q:g: expected absent, got ["m"]',
        'q:"h h": expected absent, got a key of another type',
        'lock:g: expected absent, got "A" without TTL',
        "lock:h: expected absent, got a key of another type until 9",
        'ready:0 "g": expected absent, got 3',
        'prio "g": expected absent, got "7"',
        'key "x": expected absent, got there',
    ]


def test_named_escapes() -> None:
    """Line ends, tabs, quotes and backslashes have short forms."""
    assert unquoted(r'"\r\n\t\"\\"') == b'\r\n\t"\\'


@pytest.mark.parametrize("op", ARGUMENTS)
@given(st.data())
def test_every_operation_reads_back(op: str, data: st.DataObject) -> None:
    """No argument of a script or of a foreign write is lost on paper: neither its default, nor what is near it."""
    numbers = {"tier": st.integers(0, 4)}
    near = st.sampled_from([0, 1, 8, 1000, 30_000])
    args = {name: data.draw(st.binary() if name in BYTES else numbers.get(name, near)) for name in ARGUMENTS[op]}
    operation = Operation(op, 7, args)
    back, _ = read(write_operation(operation))
    assert {name: back[name] for name in args} == args
