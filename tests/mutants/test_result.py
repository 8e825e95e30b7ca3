"""The record of the last full run, and the list of equivalents: what is wrong with either is said."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants.__main__ import all_mutants
from tests.mutants.equivalent import MOST, Equivalents
from tests.mutants.generate import Mutant
from tests.mutants.result import Result, digests
from tests.support.designs import NAMES, package_scripts

SOURCES = {"ack.lua": "one", "claim.lua": "two"}
A, B, C = (
    Mutant(script, 1, f"change {number}", "", ("", f"{number}"))
    for number, script in enumerate(["ack", "ack", "claim"])
)
GOOD = Result(digests(SOURCES), {A.id: "case: ACK-1a", B.id: "", C.id: "machine: x"}, {B.id: 100})
NONE = Equivalents()
LISTED = Equivalents({B.id: "It says the same in other words."})


def test_a_good_record() -> None:
    """Every mutant was killed, or is listed and was tried."""
    assert GOOD.wrong([A, B, C], SOURCES, LISTED) == []


@pytest.mark.parametrize(
    ("record", "equivalents", "says"),
    [
        (GOOD, NONE, f"{B.id} lived, and is not listed as equivalent"),
        (replace(GOOD, agreed={}), LISTED, f"{B.id} is listed as equivalent without evidence"),
        (replace(GOOD, killed_by={A.id: "x", B.id: "x"}), LISTED, f"{C.id} is not in result.json: run "),
    ],
)
def test_a_bad_record(record: Result, equivalents: Equivalents, says: str) -> None:
    """What it does not say, or says of a mutant that lived, is told."""
    (sentence,) = record.wrong([A, B, C], SOURCES, equivalents)
    assert sentence.startswith(says)


def test_the_cases_that_no_mutant_needs() -> None:
    """Those that the record does not name: what they would kill another case has killed."""
    assert GOOD.spare(["ACK-1a", "ACK-1b"]) == ["ACK-1b"]


def test_what_is_hunted_again() -> None:
    """Every mutant of a script that changed, and as many of the others as the sample has."""
    draw = random.Random(1)
    assert GOOD.due([A, B, C], SOURCES, draw, 10) != [A, B, C]
    assert set(GOOD.due([A, B, C], SOURCES, draw, 10)) == {A, C}  # B lived: the evidence is in the record
    assert GOOD.due([A, B, C], {**SOURCES, "ack.lua": "new"}, draw, 0) == [A, B]
    assert GOOD.wrong([A, B, C], {"ack.lua": "new", "claim.lua": "new"}, NONE) == []


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A mutant a line."""
    GOOD.write(tmp_path / "result.json")
    assert Result.read(tmp_path / "result.json") == GOOD
    assert (tmp_path / "result.json").read_text(encoding="utf-8").count("\n") > 8


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        ({"ack-00000000": "why"}, "ack-00000000 is listed and is no mutant any more: take it out"),
        ({A.id: " "}, f"{A.id} is listed without a reason"),
    ],
)
def test_a_bad_list(listed: dict[str, str], says: str) -> None:
    """A stale entry, and one that says nothing."""
    assert says in Equivalents(listed).wrong([A, B, C] * 20)


def test_too_many_equivalents() -> None:
    """A list of everything that lives is no list of equivalents."""
    (sentence,) = LISTED.wrong([A, B, C])
    assert sentence == f"1 of 3 mutants are listed as equivalent; {MOST:.0%} may be"


def test_a_killed_equivalent() -> None:
    """What was killed is no equivalent."""
    assert LISTED.refuted({A.id: "x", B.id: "case: y"}) == [f"{B.id} is listed as equivalent and was killed by case: y"]


def test_the_list_of_the_project() -> None:
    """Every entry is a mutant of the scripts as they are, with a reason, and they are few."""
    assert Equivalents.read().wrong(all_mutants(NAMES)) == []


def test_the_record_of_the_project() -> None:
    """Every mutant of every script that did not change since was killed, or is listed and was tried."""
    assert Result.read().wrong(all_mutants(NAMES), package_scripts(), Equivalents.read()) == []
