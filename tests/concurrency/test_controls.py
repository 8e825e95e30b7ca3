"""The controls: known-bad designs, run concurrently, are rejected by both checkers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.concurrency.history import History
from tests.concurrency.judge import Judgement, judge, report
from tests.concurrency.plan import Settings
from tests.concurrency.run import Run, Scenario
from tests.concurrency.verdict import REJECTED
from tests.support.designs import Design, designs
from tests.support.servers import discover

SEEN_BY_CLIENTS = ("ack-without-fence", "two-step-nack", "original", "ack-pops-tail", "nack-to-tail", "lpush")
SEEN_BY_THE_SERVER_ALONE = ("drain-keeps-entry", "zadd-without-nx")
"""What these break no client need ever notice: the keys tell it."""
WORKERS = 6
HARSH = Settings("", 40, groups=2, slow=0.15, stalls=0.8, publishes=0.6, nacks=0.5, work_ms=(0, 30, 60))
"""Few groups, much contention, and workers that are held up where it hurts."""
DRAINING = replace(HARSH, slow=0.0, publishes=0.3, nacks=0.0, work_ms=(0,))
"""Groups become empty again and again."""
TRIES = 5
"""Histories in which a fault has to show: what happens at once is left to the machine."""


def design(name: str) -> Design:
    """The design of that name."""
    (found,) = [each for each in designs() if each.name == name]
    return found


def rejected(name: str, folder: Path) -> tuple[History, Judgement]:
    """The first history in which the fault is seen, or the last one; the clients never see what the server does not."""
    harsh = DRAINING if name == "drain-keeps-entry" else HARSH
    source = next(iter(discover()), None)
    if source is None:
        pytest.skip("no server was found")
    with source.start() as server, server.clock.released():  # type: ignore[attr-defined]
        for number in range(TRIES):
            settings = replace(harsh, seed=f"{name}, {number}", extends=name != "original")
            scenario = Scenario([f"design {name}"] * WORKERS, settings, kills=0, cuts=False)
            into = folder / str(number)
            into.mkdir()
            history = Run(server, scenario, into).history()
            judgement = judge(history, design(name))
            assert judgement.by_server.kind == REJECTED or judgement.by_clients.kind != REJECTED, str(judgement)
            if judgement.by_server.kind == REJECTED and (judgement.rejected or name not in SEEN_BY_CLIENTS):
                break
            server.flush()
    return history, judgement


@pytest.mark.parametrize("name", SEEN_BY_CLIENTS)
def test_both_checkers_reject(name: str, tmp_path: Path) -> None:
    """What the clients can see both checkers reject, in the same history, and a timeline is written that shows it."""
    history, judgement = rejected(name, tmp_path)
    assert judgement.rejected, str(judgement)
    path = tmp_path / "timeline.html"
    assert str(path) in report(history, judgement, path)
    page = path.read_text(encoding="utf-8")
    assert "<g class='wrong'>" in page
    assert "REJECTED" in page
    assert "prefers-color-scheme: dark" in page
    assert "http" not in page


@pytest.mark.parametrize("name", SEEN_BY_THE_SERVER_ALONE)
def test_the_server_s_order_rejects(name: str, tmp_path: Path) -> None:
    """What no client need notice shows in the server's own order."""
    _, judgement = rejected(name, tmp_path)
    assert judgement.by_server.kind == REJECTED, str(judgement)
