"""The second checker on histories made for each of its rules: one that a good queue gives, and one that none does."""

from __future__ import annotations

import pytest

from model.notation import read
from model.operation import Delivery, Ok, Reply
from tests.concurrency.blackbox import BUDGET, MS, Search, check
from tests.concurrency.history import FOREVER_NS, History, Record
from tests.concurrency.verdict import ACCEPTED, REJECTED, UNKNOWN

END = '99000+1 drain: claim token="last" -> nil'


def history(*lines: str) -> History:
    """``INVOKED+MS LANE: OPERATION -> REPLY`` a line, in ms; without a reply the answer is unknown."""
    records = []
    for number, line in enumerate(lines):
        when, lane, text = line.split(maxsplit=2)
        start, _, took = when.partition("+")
        operation, reply = read(f"0 {text}")
        ended = FOREVER_NS if reply is None else (int(start) + int(took)) * MS
        token = operation.args.get("token", b"")
        assert isinstance(token, bytes)
        records.append(Record(lane.rstrip(":"), number, operation, int(start) * MS, ended, said(reply), token))
    return History(records)


def said(text: str | None) -> Reply | None:
    """A reply of the notation."""
    if text is None:
        return None
    if text.startswith("group="):
        group, payload = (part.split("=")[1].strip('"').encode() for part in text.split())
        return Ok(Delivery(group, payload))
    return Ok(None if text == "nil" else int(text))


PUBLISHED = ['0+1 p: publish group="g" payload="1" -> 1', '2+1 p: publish group="g" payload="2" -> 2']
CLAIM_A = '10+1 a: claim token="A" visibility_ms=1000 -> group="g" payload="1"'
ACK_A = '20+1 a: ack group="g" token="A" -> 1'
CLAIM_2 = '30+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="2"'
ACK_2 = '40+1 b: ack group="g" token="B" -> 1'
GOOD = [*PUBLISHED, CLAIM_A, ACK_A, CLAIM_2, ACK_2, END]


def without(*lines: str) -> list[str]:
    """The good history without some lines."""
    return [line for line in GOOD if line not in lines]


def test_good_history() -> None:
    """Two messages, each claimed and acked in turn."""
    assert check(history(*GOOD)).kind == ACCEPTED


ACCEPTED_HISTORIES = {
    "a lease that ended": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '112+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '120+1 a: ack group="g" token="A" -> 0',
        '130+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "a late ack before anybody else claims": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '500+1 a: ack group="g" token="A" -> 0',
        '510+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '520+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "an ack whose answer was lost took effect": [*without(ACK_A), '20+1 a: ack group="g" token="A"'],
    "an ack whose answer was lost took no effect": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '20+1 a: ack group="g" token="A"',
        '200+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '210+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "a publish whose answer was lost was stored": [
        PUBLISHED[0],
        '2+1 p: publish group="g" payload="2"',
        *GOOD[2:],
    ],
    "a publish whose answer was lost was not stored": [
        '1+1 q: publish group="g" payload="never seen"',
        *GOOD,
    ],
    "a nack whose answer was lost freed the group": [
        *PUBLISHED[:1],
        CLAIM_A,
        '20+1 a: nack group="g" token="A"',
        '30+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '40+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "an extend whose answer was lost renewed the lease": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '90+1 a: extend group="g" token="A" visibility_ms=1000',
        '500+1 a: ack group="g" token="A" -> 1',
        END,
    ],
    "publishes at once, in the order in which they are delivered": [
        '0+9 q: publish group="g" payload="2" -> 2',
        '0+9 p: publish group="g" payload="1" -> 1',
        *GOOD[2:],
    ],
    "a claim that took effect late in its call": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '20+200 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '230+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "a park that ended": [
        *PUBLISHED[:1],
        CLAIM_A,
        '20+1 a: nack group="g" token="A" delay_ms=50 -> 1',
        '75+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '80+1 b: ack group="g" token="B" -> 1',
        END,
    ],
}
REJECTED_HISTORIES = {
    "two leases at once": [
        *PUBLISHED,
        CLAIM_A,
        '15+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        *GOOD[3:],
    ],
    "a stale ack that was accepted": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '500+1 a: ack group="g" token="A" -> 1',
        END,
    ],
    "an ack refused within its lease": [
        *PUBLISHED[:1],
        CLAIM_A,
        '20+1 a: ack group="g" token="A" -> 0',
        '30+1 a: ack group="g" token="A" -> 1',
        END,
    ],
    "two acks of one lease": [*GOOD[:4], '22+1 a: ack group="g" token="A" -> 1', *GOOD[4:]],
    "a message that is delivered out of order": [
        *PUBLISHED,
        CLAIM_A.replace('payload="1"', 'payload="2"'),
        ACK_A,
        CLAIM_2.replace('payload="2"', 'payload="1"'),
        ACK_2,
        END,
    ],
    "a message that is lost": without(CLAIM_2, ACK_2),
    "a message that comes again after its ack": [
        *GOOD[:-1],
        '50+1 c: claim token="C" visibility_ms=1000 -> group="g" payload="2"',
        '60+1 c: ack group="g" token="C" -> 1',
        END,
    ],
    "a message that nobody published": without(PUBLISHED[1]),
    "a length that cannot be": [PUBLISHED[0], PUBLISHED[1].replace("-> 2", "-> 3"), *GOOD[2:]],
    "a parked group that is claimed": [
        *PUBLISHED[:1],
        CLAIM_A,
        '20+1 a: nack group="g" token="A" delay_ms=500 -> 1',
        '75+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '80+1 b: ack group="g" token="B" -> 1',
        END,
    ],
    "a lease that was given back and is settled": [
        *PUBLISHED[:1],
        CLAIM_A,
        '20+1 a: nack group="g" token="A" delay_ms=50 -> 1',
        '30+1 a: ack group="g" token="A" -> 1',
        END,
    ],
    "an extend that was accepted and did not renew": [
        *PUBLISHED[:1],
        '10+1 a: claim token="A" visibility_ms=100 -> group="g" payload="1"',
        '20+1 a: extend group="g" token="A" visibility_ms=1000 -> 1',
        '200+1 b: claim token="B" visibility_ms=1000 -> group="g" payload="1"',
        '210+1 b: ack group="g" token="B" -> 1',
        END,
    ],
}


@pytest.mark.parametrize("name", ACCEPTED_HISTORIES)
def test_history_of_a_good_queue(name: str) -> None:
    """What a good queue may show is accepted, however the unknown answers turned out."""
    lines = ACCEPTED_HISTORIES[name]
    found = check(history(*lines, *([END] if END not in lines else [])))
    assert found.kind == ACCEPTED, str(found)


@pytest.mark.parametrize("name", REJECTED_HISTORIES)
def test_history_of_no_good_queue(name: str) -> None:
    """What no good queue shows is rejected, and the group and what came are named."""
    found = check(history(*REJECTED_HISTORIES[name]))
    assert found.kind == REJECTED, str(found)
    assert found.group == b"g"
    assert "lane" in found.why or "messages are left" in found.why


@pytest.mark.parametrize("lines", [[], GOOD[:-1], [*GOOD[:-1], END.replace(" -> nil", "")]])
def test_what_is_left_is_not_known(lines: list[str]) -> None:
    """Without a last claim that found nothing it cannot be told whether a message is lost: that is no pass."""
    assert check(history(*lines)).kind == UNKNOWN


def test_too_many_orders_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that is not decided within the budget is unknown."""
    assert BUDGET > 1
    monkeypatch.setattr("tests.concurrency.blackbox.BUDGET", 3)
    assert check(history(*GOOD)).kind == UNKNOWN


def test_lengths_need_not_be_told() -> None:
    """Old clients answer 1 to every publish; without the lengths the order alone counts."""
    lines = [line.replace("-> 2", "-> 1") if "publish" in line else line for line in GOOD]
    assert check(history(*lines)).kind == REJECTED
    assert check(history(*lines), tells_lengths=False).kind == ACCEPTED
    assert Search(history(*lines).records, True).run() is False
