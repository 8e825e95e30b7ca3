"""The account of a load: what it must find in journals, and what it must not, one small history each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.load.account import Account
from tests.faults.load.journal import NEVER, Call, Journal, read

History = list[str]

GOOD: dict[str, History] = {
    "a message that went through": ["1-2 publish m", "3-4 claim m t", "5-6 ack m t"],
    "two in order": ["1-2 publish m", "2-3 publish n", "4-5 claim m t", "6-7 ack m t", "8-9 claim n u", "9-10 ack n u"],
    "given back, and delivered again": [
        "1-2 publish m",
        "3-4 claim m t",
        "5-6 nack m t",
        "7-8 claim m u",
        "9-10 ack m u",
    ],
    "an ack whose reply was lost": ["1-2 publish m", "3-4 claim m t", "5-6 ack m t unknown"],
    "an ack that was cut off, and the next": [
        *("1-2 publish m", "3-4 claim m t", "5-6 ack m t unknown", "7-8 claim m u", "9-10 ack m u"),
    ],
    "a lease that ended": ["1-2 publish m", "3-4 claim m t", "5-6 claim m u", "7-8 ack m t not", "9-10 ack m u"],
    "a publish that is unknown, and was not stored": ["1-2 publish m unknown"],
    "a publish that is unknown, and came late": [
        *("1-2 publish m unknown", "2-3 publish n", "4-5 claim n t", "6-7 ack n t", "8-9 claim m u", "9-10 ack m u"),
    ],
    "a publish that was refused": ["1-2 publish m refused"],
    "the ack of one, and at once the claim of the next": [
        *("1-2 publish m", "2-3 publish n", "4-5 claim m t", "6-9 ack m t", "7-8 claim n u", "9-10 ack n u"),
    ],
    "an extend, and the ack": ["1-2 publish m", "3-4 claim m t", "5-6 extend m t", "7-8 ack m t"],
    "a settlement under way while another claims": [
        *("1-2 publish m", "3-4 claim m t", "5-9 nack m t", "6-7 claim m u", "10-11 ack m u"),
    ],
}

BAD: dict[str, tuple[str, History]] = {
    "nobody ever got it": ("lost", ["1-2 publish m"]),
    "delivered, and never again": ("lost", ["1-2 publish m", "3-4 claim m t", "5-6 ack m t not"]),
    "its ack was refused": ("lost", ["1-2 publish m", "3-4 claim m t", "5-6 ack m t refused"]),
    "given back, and gone": ("lost", ["1-2 publish m", "3-4 claim m t", "5-6 nack m t"]),
    "delivered after its ack": (
        "delivered again after its ack",
        ["1-2 publish m", "3-4 claim m t", "5-6 ack m t", "7-8 claim m u", "9-10 ack m u"],
    ),
    "the second first": (
        "out of order",
        ["1-2 publish m", "2-3 publish n", "4-5 claim n t", "6-7 ack n t", "8-9 claim m u", "9-10 ack m u"],
    ),
    "the second while the first is leased": (
        "out of order",
        [
            *("1-2 publish m", "2-3 publish n", "4-5 claim m t", "6-7 claim n u", "8-9 ack m t not", "9-10 ack n u"),
            *("11-12 claim m v", "13-14 ack m v"),
        ],
    ),
    "both settle": (
        "two at once",
        ["1-2 publish m", "3-4 claim m t", "5-6 claim m u", "7-8 ack m t", "9-10 nack m u"],
    ),
    "renewed after another took it": (
        "two at once",
        ["1-2 publish m", "3-4 claim m t", "5-6 claim m u", "7-8 extend m t", "9-10 ack m u"],
    ),
    "settled twice": ("two at once", ["1-2 publish m", "3-4 claim m t", "5-6 nack m t", "7-8 ack m t"]),
    "refused, and there": ("never published", ["1-2 publish m refused", "3-4 claim m t", "5-6 ack m t"]),
    "from nowhere": ("never published", ["3-4 claim m t", "5-6 ack m t"]),
}


def account(history: History, left: Sequence[str] = ()) -> Account:
    """`ASKED-DONE op text token outcome`, of one group; the outcome is `done` unless it is told."""
    calls = []
    for line in history:
        at, op, text, *rest = line.split()
        asked, done = (int(word) for word in at.split("-"))
        outcome = next((word for word in rest if word in ("not", "refused", "unknown")), "done")
        token = next((word for word in rest if len(word) == 1), "")
        calls.append(Call("w", op, asked, "g", text, token, done, outcome))  # type: ignore[arg-type]
    return Account(calls, left)


@pytest.mark.parametrize("history", GOOD.values(), ids=GOOD)
def test_a_good_history(history: History) -> None:
    """Nothing is said of what a correct queue can do."""
    assert account(history).wrong == {}


@pytest.mark.parametrize(("kind", "history"), BAD.values(), ids=BAD)
def test_a_bad_history(kind: str, history: History) -> None:
    """What is wrong is told, and nothing else."""
    assert list(account(history).wrong) == [kind]


def test_keys_that_are_left() -> None:
    """A key that remains is told."""
    assert account([], ["redisq:q:g"]).wrong == {"left behind": ["key redisq:q:g"]}


@pytest.mark.parametrize(
    ("ends", "cause"),
    [
        (["5-6 nack m t"], {}),
        (["5-6 ack m t not"], {"its lease had ended": 1}),
        (["5-6 ack m t refused"], {"its settlement was refused": 1}),
        (["5-6 ack m t unknown"], {"its settlement was cut off": 1}),
        ([f"5-{NEVER} ack m t unknown"], {"its worker was killed": 1}),
        (["5-6 extend m t"], {"its worker was killed": 1}),
        ([], {"its worker was killed": 1}),
        (["5-6 ack m t"], {"stored twice, or its ack was undone": 1}),
    ],
    ids=str,
)
def test_causes_of_duplicates(ends: History, cause: dict[str, int]) -> None:
    """A second delivery has the cause that the end of the first lease shows."""
    history = ["1-2 publish m", "3-4 claim m t", *ends, "7-8 claim m u", "9-10 ack m u"]
    assert account(history).duplicates == cause


def test_a_journal_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """A call without an answer is unknown; one with an answer is what was answered, whatever bytes its group has."""
    journal = Journal(tmp_path / "w1.journal")
    journal.answer(journal.ask("claim"), "done", lease=("\udcff\n", "m", "t"))
    journal.answer(journal.ask("ack", "\udcff\n", "m", "t"), "refused", "OOM")
    journal.ask("publish", "g", "n")
    claim, ack, publish = read(tmp_path)
    assert (claim.worker, claim.group, claim.text, claim.token, claim.outcome) == ("w1", "\udcff\n", "m", "t", "done")
    assert (ack.outcome, ack.error) == ("refused", "OOM")
    assert (publish.outcome, publish.done, publish.error) == ("unknown", NEVER, "its process was killed")
    assert claim.asked <= claim.done <= ack.asked
