"""Every transition of a scope agrees on fakeredis and on a real server; a script that is wrong anywhere does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from model.scope import SCOPES
from tests.exploration import refine
from tests.exploration.refine import Executor
from tests.exploration.transitions import Transitions, collect
from tests.support.designs import designs, lay_over
from tests.support.fake import FakeHost
from tests.support.servers import discover
from tests.support.witness import Host, LuaFiles

SMALL = replace(SCOPES["small"], foreign=1, messages=1)
# Known-bad designs whose fault shows within this scope.
CONTROLS = ["drain-keeps-entry", "deadline-off-by-one", "persisted-lock-blocks", "stale-keeps-prio", "park-same-token"]


@pytest.fixture(scope="module")
def transitions() -> Transitions:
    """Those of a small scope, foreign writes included; it is too small to see all that a search must see."""
    return collect(SMALL, whole=False)


@pytest.fixture(params=["fakeredis", *(source.name for source in discover())])
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """fakeredis, and every server found."""
    if request.param == "fakeredis":
        yield FakeHost()
        return
    with next(source for source in discover() if source.name == request.param).start() as server:
        yield server


def test_every_transition_agrees(host: Host, transitions: Transitions) -> None:
    """On each host, each transition gives the model's reply and the model's keys."""
    assert len(transitions.found) == 3_241
    assert list(Executor(host, refine.package_lua()).run(transitions.found)) == []


@pytest.mark.parametrize("name", CONTROLS)
def test_a_known_bad_design_disagrees(name: str, transitions: Transitions, tmp_path: Path) -> None:
    """A design with one fault disagrees in some transition, and the report shows keys, call and difference."""
    design = next(one for one in designs() if one.name == name)
    executor = Executor(FakeHost(), LuaFiles(lay_over(design, tmp_path)))
    found = next(executor.run(transitions.found))
    assert str(found).startswith("fakeredis disagrees with the model\nfrom\n")
    assert found.keys or found.got != found.transition.reply


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints how many of how many transitions agree on each host; the exit code is 0 if all do."""
    assert refine.main(["--scope", "small"]) == 0
    out = capsys.readouterr().out
    assert "2,342 states, 20,108 transitions" in out
    assert out.count("10,745 of 10,745 transitions agree") == 2
