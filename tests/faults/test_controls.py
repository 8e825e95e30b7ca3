"""For each correction, the designs that undo just it: its check fails on each, on every real server.

So a check that has gone blind, or a correction taken out of the scripts, is seen here and not in production.
"""

from __future__ import annotations

import pytest

from tests.faults.checks import CHECKS
from tests.faults.judge import DESIGNS, Control, Judge

CONTROLS = [
    (correction, design.name)
    for design in DESIGNS.values()
    for correction in design.breaks
    if correction in CHECKS and design.name != "original"
]


@pytest.mark.parametrize(("correction", "design"), CONTROLS)
def test_correction_undone(judge: Judge, correction: str, design: str) -> None:
    """The check of a correction fails on the scripts without it."""
    judge.convicts(Control(CHECKS[correction], ".", design))


def test_every_correction_has_a_control() -> None:
    """Each check stands beside at least one design that undoes its correction."""
    assert {correction for correction, _ in CONTROLS} == set(CHECKS)


def test_every_special_design_is_a_control() -> None:
    """What no plain server shows is convicted here: full servers, users, and round trips."""
    special = {design.name for design in DESIGNS.values() if design.shows != "plain"}
    assert special <= {design for _, design in CONTROLS}
