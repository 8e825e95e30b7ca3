"""What only the scripts are asked: traces of calls that no typed API need be able to make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import Case, read_pages
from tests.support.designs import designs, lay_over
from tests.support.fake import FakeHost
from tests.support.session import Session
from tests.support.shifted import replay
from tests.support.witness import LuaFiles, Scripts

PAGE = read_pages([Path(__file__).with_name("of_scripts.md")])


@pytest.mark.parametrize("case", PAGE.cases, ids=lambda case: case.id)
def test_a_trace(run: Session, case: Case) -> None:
    """ARG-3, PUBLISH-6: on fakeredis and every server with a virtual clock each reply and every key is the model's."""
    for host in run.hosts:
        if host.clock.exact:
            divergence = replay(case.operations, [Scripts(host, run.lua)])
            assert divergence is None, divergence.report


def test_a_wrong_script_is_seen(tmp_path: Path) -> None:
    """A claim with leases in seconds is convicted by such a trace, too."""
    wrong = next(design for design in designs() if design.name == "px-in-seconds")
    witness = Scripts(FakeHost(), LuaFiles(lay_over(wrong, tmp_path)))
    assert replay(PAGE.cases[0].operations, [witness]) is not None
