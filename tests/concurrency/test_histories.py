"""Concurrent histories of the package and of ports are accepted, by both checkers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.concurrency.judge import judge, report
from tests.concurrency.lane import FAULTS
from tests.concurrency.plan import Settings
from tests.concurrency.run import Run, Scenario
from tests.support.running import BaseServer

ROOT = Path(__file__).parents[2]
PORTS = ROOT / "tests" / "ports"


def kinds() -> list[str]:
    """The library, both transports, and every port that is built."""
    found = ["sync", "sync", "async", f"port {sys.executable} {PORTS / 'python.py'}"]
    node, c = PORTS / "node" / "dist" / "adapter.js", PORTS / "c" / "adapter"
    if node.exists() and shutil.which("node"):
        found.append(f"port node {node}")
    if c.exists():
        found.append(f"port {c}")
    return found


def test_history(server: BaseServer, seed: str, pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Many processes, connections that are lost, workers that are killed: every step and every reply is the model's."""
    scenario = Scenario(kinds(), Settings(seed, pytestconfig.getoption("--calls")))
    run = Run(server, scenario, tmp_path)
    history = run.history()
    judgement = judge(history)
    injected = ", ".join(f"{count} {fault}" for fault, count in sorted(run.injected.items()))
    known = sum(record.reply is not None for record in history.records)
    print(f"{server.name}: {known:,} answered calls of {len(history.records):,}; {injected}\n{judgement}")
    assert judgement.accepted, report(history, judgement, kept(tmp_path, f"{server.name}-{seed}"))
    assert run.injected["kill"] == scenario.kills
    assert run.injected["cut-after"]
    assert run.injected["cut-before"]


def kept(folder: Path, name: str) -> Path:
    """Where the timeline of a failure goes: into the folder of the test, which pytest keeps."""
    return folder / f"{re.sub(r'[^a-z0-9.]+', '-', name)}.html"


def test_the_same_seed_injects_the_same(tmp_path: Path) -> None:
    """What is done to which lane, at which command, is decided before anything runs."""
    scenario = Scenario(["sync", "async"], Settings("a seed", 50))
    planned = []
    for _ in range(2):
        run = Run(_NoServer(), scenario, tmp_path)  # type: ignore[arg-type]
        lanes = [run._lane(f"lane-{number}", FAULTS) for number in range(4)]
        planned.append([lane.faults for lane in lanes])
        for lane in lanes:
            lane.close()
    assert planned[0] == planned[1]
    assert planned[0] != [{}] * 4


class _NoServer:
    url = "redis://127.0.0.1:0/0"


def test_worker_that_fails_is_named(tmp_path: Path) -> None:
    """A worker that cannot start ends with what is wrong, so that the run does not judge half a history."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.concurrency.worker", "{}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "settings" in done.stderr
