"""The invariants: each is seen to fail on a state or history that breaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from model.invariants import Ledger, of_state
from model.operation import Delivery, Ok, Operation, Reply
from model.state import Lock, State

GOOD: Mapping[str, Any] = {"queues": {b"g": (b"m",)}, "ready": ({b"g": 0}, {}, {}, {}, {}), "prio": {b"g": b"0"}}


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ({"queues": {b"g": ()}}, "INV-LIST"),
        ({"ready": ({},) * 5}, "INV-INDEX"),
        ({"prio": {}}, "INV-PRIO"),
        ({"queues": {}, "prio": {}}, "INV-STALE"),
        ({"ready": ({b"g": 0}, {b"g": 0}, {}, {}, {})}, "INV-TIER"),
        ({"prio": {b"g": b"1"}}, "INV-TIER"),
        ({"prio": {b"g": b"0", b"h": b"0"}}, "INV-DRAIN"),
        ({"locks": {b"g": Lock(b"A", None)}}, "INV-TTL"),
        ({"locks": {b"h": Lock(b"A", 9)}}, "INV-DRAIN"),
        ({"strays": (b"x",)}, "INV-KEYS"),
    ],
)
def test_each_is_seen_to_fail(change: Mapping[str, Any], broken: str) -> None:
    """A good state has no complaint, and the changed one has the one it should."""
    assert of_state(State(**GOOD)) == []
    assert [complaint.split()[0] for complaint in of_state(State(**{**GOOD, **change}))] == [broken]


PUBLISH = (Operation("publish", 0, {"group": b"g", "payload": b"m"}), Ok(1))
CLAIM = (Operation("claim", 0, {"token": b"A", "visibility_ms": 100}), Ok(Delivery(b"g", b"m")))


def _settle(op: str, time_ms: int, token: bytes = b"A", **args: int) -> Operation:
    return Operation(op, time_ms, {"group": b"g", "token": token, **args})


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        ([PUBLISH, (PUBLISH[0], Ok(1))], "INV-LOST"),
        ([PUBLISH, CLAIM, CLAIM], "INV-EXCLUSIVE"),
        ([PUBLISH, CLAIM, (_settle("nack", 0, delay_ms=50), Ok(1)), CLAIM], "INV-PARKED"),
        ([CLAIM], "INV-FIFO"),
        ([PUBLISH, CLAIM, (_settle("ack", 101), Ok(1))], "INV-FENCE"),
        ([PUBLISH, CLAIM, (_settle("ack", 0, b"B"), Ok(1))], "INV-FENCE"),
        (
            [PUBLISH, CLAIM, (_settle("extend", 50, visibility_ms=100), Ok(1)), (_settle("ack", 150), Ok(0))],
            "INV-FENCE",
        ),
        ([PUBLISH, CLAIM, (_settle("ack", 0), Ok(1))], ""),
        ([PUBLISH, CLAIM, (_settle("nack", 0), Ok(1)), CLAIM, (Operation("wait", 5), Ok(None))], ""),
    ],
)
def test_the_ledger_complains(history: list[tuple[Operation, Reply]], broken: str) -> None:
    """Only the last step of each history breaks something, and the ledger says what."""
    ledger = Ledger()
    complaints = [ledger.record(operation, reply) for operation, reply in history]
    assert not any(complaints[:-1])
    assert [complaint.split()[0] for complaint in complaints[-1]] == ([broken] if broken else [])


def test_the_ledger_counts_what_is_stored() -> None:
    """Messages that were published and not acked are stored, in order; anything else is lost or doubled."""
    ledger = Ledger()
    ledger.record(*PUBLISH)
    assert ledger.against(State(**GOOD)) == []
    assert "INV-LOST" in ledger.against(State())[0]
