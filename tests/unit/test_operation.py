"""The operation object: its JSON reads back, and each mistake in it is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.operation import (
    ARGUMENTS,
    ARGV,
    BYTES,
    Delivery,
    Error,
    Fault,
    Malformed,
    Ok,
    Operation,
    Unsupported,
    reply_to_json,
    tagged,
    untagged,
)


@given(st.sampled_from(sorted(ARGUMENTS)), st.binary(), st.integers(0, 4))
def test_reads_back(op: str, data: bytes, number: int) -> None:
    """Every operation, with any bytes, is the same after JSON."""
    operation = Operation(op, number, {name: data if name in BYTES else number for name in ARGUMENTS[op]})
    assert Operation.from_json(operation.to_json()) == operation
    if op in ARGV:
        raw = Operation(op, number, argv=(data,))
        assert Operation.from_json(raw.to_json()) == raw
        assert raw.prefix == data


def test_prefix_of_no_arguments() -> None:
    """A call without any ARGV has an empty prefix, one without a prefix the default."""
    assert Operation("ack", 0, argv=()).prefix == b""
    assert Operation("wait", 0).prefix == b"redisq"


CLAIM = {"op": "claim", "time_ms": 0, "token": {"utf8": "t"}}


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        ([], "JSON object"),
        ({"op": "x", "time_ms": 0}, "op: one of"),
        ({"op": 3, "time_ms": 0}, "op: one of"),
        ({**CLAIM, "time_ms": True}, "time_ms"),
        ({**CLAIM, "time_ms": -1}, "time_ms"),
        ({**CLAIM, "argv": []}, "argv: a list"),
        ({"op": "wait", "time_ms": 0, "argv": []}, "argv: a list"),
        ({"op": "ack", "time_ms": 0, "argv": 7}, "argv: a list"),
        ({"op": "ack", "time_ms": 0, "argv": [7]}, "argv: bytes as"),
        ({**CLAIM, "delay_ms": 1}, "delay_ms: claim has no such argument"),
        ({"op": "wait", "time_ms": 0, "group": 1}, "it takes none"),
        ({"op": "claim", "time_ms": 0}, "token: claim needs it"),
        ({**CLAIM, "token": "t"}, "token: bytes as"),
        ({**CLAIM, "token": {"utf8": "t", "b64": ""}}, "token: bytes as"),
        ({**CLAIM, "token": {"utf8": "\ud800"}}, "unpaired surrogate"),
        ({**CLAIM, "token": {"b64": "*"}}, "not base64"),
        ({**CLAIM, "visibility_ms": None}, "visibility_ms: an integer, or"),
        ({**CLAIM, "now_ms": 1.5}, "now_ms: an integer, null"),
        (
            {"op": "drop-entry", "time_ms": 0, "group": {"utf8": "g"}, "tier": 9},
            "tier: an integer",
        ),
        (
            {"op": "drop-entry", "time_ms": 0, "group": {"utf8": "g"}, "tier": {"utf8": "1"}},
            "tier: an integer",
        ),
    ],
)
def test_each_mistake_is_named(obj: object, said: str) -> None:
    """Malformed says which member is wrong."""
    with pytest.raises(Malformed, match=said):
        Operation.from_json(obj)


def test_replies_as_json() -> None:
    """Each kind of reply has one form."""
    assert reply_to_json(Ok(1)) == {"ok": 1}
    assert reply_to_json(Ok(Delivery(b"g", b"\xff"))) == {"ok": {"group": {"utf8": "g"}, "payload": {"b64": "/w=="}}}
    assert reply_to_json(Error("REDISQ_BADARG", ("px",))) == {"error": {"code": "REDISQ_BADARG", "arguments": ["px"]}}
    assert reply_to_json(Unsupported("why")) == {"unsupported": "why"}
    assert reply_to_json(Fault("what")) == {"fault": "what"}


@pytest.mark.parametrize(("data", "form"), [(b"a\xc3\xa9", "utf8"), (b"", "utf8"), (b"\xff", "b64"), (b"a\0b", "b64")])
def test_bytes_travel_as_text_only_where_every_language_reads_all_of_it(data: bytes, form: str) -> None:
    """What is no UTF-8 travels as base64, and so does a NUL, at which the strings of C end."""
    assert list(tagged(data)) == [form]
    assert untagged(tagged(data), "group") == data
