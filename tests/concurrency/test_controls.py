"""The controls: known-bad designs, run concurrently, are rejected by both checkers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.concurrency.judge import judge, report
from tests.concurrency.plan import Settings
from tests.concurrency.run import Run, Scenario
from tests.concurrency.verdict import REJECTED
from tests.support.designs import Design, designs
from tests.support.servers import discover

SEEN_BY_CLIENTS = ("ack-without-fence", "two-step-nack", "original", "ack-pops-tail", "nack-to-tail", "lock-without-px")
SEEN_BY_THE_SERVER_ALONE = ("drain-keeps-entry", "zadd-without-nx")
"""What these break no client need ever notice: the keys tell it."""
WORKERS = 4


def design(name: str) -> Design:
    """The design of that name."""
    (found,) = [each for each in designs() if each.name == name]
    return found


@pytest.mark.parametrize("name", [*SEEN_BY_CLIENTS, *SEEN_BY_THE_SERVER_ALONE])
def test_bad_design_is_rejected(name: str, tmp_path: Path) -> None:
    """What the clients can see both checkers reject, and write the timeline that shows it; the rest the first does."""
    settings = Settings(f"controls of {name}", 70, groups=2, extends=name != "original", slow=0.3)
    scenario = Scenario([f"design {name}"] * WORKERS, settings, kills=0, cuts=False)
    source = next(iter(discover()), None)
    if source is None:
        pytest.skip("no server was found")
    with source.start() as server, server.clock.released():  # type: ignore[attr-defined]
        history = Run(server, scenario, tmp_path).history()
    judgement = judge(history, design(name))
    if name in SEEN_BY_THE_SERVER_ALONE:
        assert judgement.by_server.kind == REJECTED, str(judgement)
        return
    assert judgement.rejected, str(judgement)
    path = tmp_path / "timeline.html"
    assert str(path) in report(history, judgement, path)
    page = path.read_text(encoding="utf-8")
    assert "<g class='wrong'>" in page
    assert "REJECTED" in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page
