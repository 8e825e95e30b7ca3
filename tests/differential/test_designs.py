"""The suite's own test: the machine rejects every known-bad design by a short trace, and no equivalent.

Named cases and the lint are off here: the machine alone has to find it, and to shrink it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.campaign import campaign
from tests.support.designs import Design, designs, equivalents, lay_over
from tests.support.fake import FakeHost
from tests.support.original import Original
from tests.support.trial import Tally
from tests.support.witness import LuaFiles, Scripts

LONGEST_TRACE = 8
OPERATIONS = 20_000  # what one run of the suite compares: a fault has to show within it
ON_PLAIN_SERVERS = [design for design in designs() if design.shows == "plain"]
NOT_ON_PLAIN_SERVERS = [design for design in designs() if design.shows != "plain"]


def witness(design: Design, folder: Path) -> Scripts:
    """The design on fakeredis."""
    if design.name == "original":
        return Original(FakeHost(), LuaFiles(design.path, missing_ok=True), design)
    return Scripts(FakeHost(), LuaFiles(lay_over(design, folder)))


@pytest.mark.parametrize("design", ON_PLAIN_SERVERS, ids=lambda design: design.name)
def test_bad_design_is_rejected(design: Design, tmp_path: Path) -> None:
    """The machine finds the fault by itself, shrinks it to at most eight steps, and names the rule it breaks."""
    divergence = campaign([witness(design, tmp_path)], OPERATIONS, Tally())
    assert divergence is not None, f"{design.name} passes: {design.sentence}"
    assert len(divergence.operations) <= LONGEST_TRACE, divergence.report
    assert divergence.rules, divergence.report
    assert not divergence.rules[0].startswith(("MODEL", "INV-")), divergence.report


@pytest.mark.parametrize("design", equivalents(), ids=lambda design: design.name)
def test_equivalent_is_accepted(design: Design, tmp_path: Path) -> None:
    """Scripts that say the same in other words pass."""
    divergence = campaign([witness(design, tmp_path)], OPERATIONS // 10, Tally())
    assert divergence is None, divergence and divergence.report


def test_the_others_need_a_special_server() -> None:
    """What a plain server cannot show is left to a full one, to one with users, and to interleaved round trips."""
    assert {design.shows for design in NOT_ON_PLAIN_SERVERS} == {"round-trips", "maxmemory", "acl"}
