"""The soak: what it does is decided by its seed, and it tells what it finds."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.load import soak
from tests.faults.load.injury import Scene
from tests.support.running import BaseServer
from tests.support.servers import Server


@pytest.fixture
def binary(one_server: BaseServer) -> str:
    """A server that can be started."""
    if not isinstance(one_server, Server):
        pytest.skip(f"{one_server.name}: not a process of our own")
    return str(one_server.binary)


def test_everything_at_once(binary: str, capsys: pytest.CaptureFixture[str]) -> None:
    """FAULT-1, FAULT-2, FAULT-4, FAULT-5, FAULT-6, FAULT-7: kept all at once, and the output says what was checked."""
    assert soak.main(["--seconds", "8", "--seed", "7", "--redis-server", binary]) == 0
    out = capsys.readouterr().out
    assert "8 s, seed 7" in out
    assert "lost 0, delivered again after its ack 0, out of order 0, two at once 0" in out
    assert out.endswith("KEPT: every message that was published is accounted for\n")


def test_a_flaw_is_found_out(binary: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients that take errors for answers break promises: the exit code is 1, and what is wrong is told."""
    monkeypatch.setattr(soak, "soak", partial(soak.soak, flaw="takes-errors-for-done"))
    assert soak.main(["--seconds", "5", "--redis-server", binary, "--json"]) == 1
    figures, _, rest = capsys.readouterr().out.partition("\n")
    assert json.loads(figures)["wrong"]["lost"] > 0
    assert "stored, never acked, and not there" in rest


def plan(seed: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done in which order, and with which dice, when each injury draws more or fewer of them."""
    done: list[str] = []
    host: Any = SimpleNamespace(url="redis://127.0.0.1:1", client=lambda **_: None)
    scene = Scene(host, SimpleNamespace(settings=SimpleNamespace(seed=seed)))  # type: ignore[arg-type]
    monkeypatch.setattr("time.sleep", lambda _: None)

    def draws(name: str) -> Any:
        def injury(scene: Scene) -> None:
            done.append(f"{name} {scene.dice.random()}")
            for _ in range(len(done) % 3):
                scene.dice.random()

        return injury

    scene.repeat(20, *(draws(name) for name in "abc"))
    return done


def test_the_same_seed_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the injuries, and the dice of each, come from the seed alone."""
    assert plan("1", monkeypatch) == plan("1", monkeypatch)
    assert plan("1", monkeypatch) != plan("2", monkeypatch)
    assert {line[0] for line in plan("1", monkeypatch)} == set("abc")
