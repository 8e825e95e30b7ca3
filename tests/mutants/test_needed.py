"""The mutants read the other way: a case that kills none of them says nothing about the scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from model.operation import Operation
from tests.mutants.__main__ import all_mutants
from tests.mutants.generate import Mutant
from tests.mutants.kill import scripts_of, watched
from tests.support.cases import CASES, Case
from tests.support.designs import NAMES
from tests.support.fake import FakeHost
from tests.support.shifted import replay
from tests.support.witness import LuaFiles, Scripts

# Cases that kill no mutant, and why they stay.
KEPT: dict[str, str] = {}
MUTANTS = all_mutants(NAMES)


def near(case: Case) -> Iterator[Mutant]:
    """The mutants that a case may kill, a spread of each script before the rest."""
    mine = [mutant for mutant in MUTANTS if any(step.op == mutant.script for step in case.operations)]
    for start in range(7):
        yield from mine[start::7]


def killed(case: Case) -> Mutant | None:
    """The first mutant that the case kills."""
    host = FakeHost()
    for mutant in near(case):
        try:
            with scripts_of(mutant) as folder, watched(10.0) as hangs:
                if replay(case.operations, [Scripts(host, LuaFiles(folder))]) is not None:
                    return mutant
        except BaseException:  # as in the hunt
            if not hangs:
                raise
            host = FakeHost()
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_is_needed(case: Case) -> None:
    """A case kills a mutant, or is listed with the reason why it stays."""
    assert (killed(case) is None) == (case.id in KEPT)


def test_a_case_that_kills_nothing_is_seen() -> None:
    """A trace that calls no script kills no mutant."""
    idle = replace(CASES[0], steps=((Operation("wait", 1_000), None),))
    assert killed(idle) is None
