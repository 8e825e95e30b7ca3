"""The named cases convict the original design: each at the step where the spec says so."""

from __future__ import annotations

import pytest

from model.operation import Operation, Reply
from model.state import State
from tests.support.cases import CASES, CORRECTIONS, Case
from tests.support.designs import designs
from tests.support.fake import FakeHost
from tests.support.levels import agrees, differing_keys
from tests.support.original import Original
from tests.support.shifted import replay
from tests.support.witness import LuaFiles

# Kept as the original has them, or not to be seen between two operations on an ordinary server.
NO_DIFFERENCE = {"E1-1", "E3-3", "E8-1", "E9-1", "E10-1", "E11-1"}
NO_CASE = {"E5", "E8"}  # a check on a full server; the client's refusal


class AtCore(Original):
    """The original design, judged at level core."""

    def agrees(self, operation: Operation, expected: Reply, got: Reply) -> bool:
        return agrees("core", operation, expected, got)

    def difference(self, expected: State, got: State) -> list[str]:
        return differing_keys("core", expected, got)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_original_differs_where_the_spec_says(case: Case) -> None:
    """The original first does something else at the step marked in the page, or nowhere if none is marked."""
    (original,) = (design for design in designs() if design.name == "original")
    divergence = replay(case.operations, [AtCore(FakeHost(), LuaFiles(original.path, missing_ok=True), original)])
    at = len(divergence.operations) if divergence else None
    assert at == case.original_differs_at, divergence and divergence.report


def test_every_correction_has_a_case() -> None:
    """Each correction has a case that the original fails, but for those that are kept or need a special server."""
    shown = {case.id.split("-")[0] for case in CASES if case.original_differs_at}
    assert set(CORRECTIONS) == {f"E{number}" for number in range(1, 17)}
    assert set(CORRECTIONS) - shown == {"E1", "E9", "E10"} | NO_CASE
    errata = [case for case in CASES if case.clauses[0] in CORRECTIONS]
    assert {case.id for case in errata if not case.original_differs_at} == NO_DIFFERENCE
