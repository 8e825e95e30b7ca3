"""Servers that are killed, restarted, or lose power while they are used."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from tests.faults.load.account import MAY_SHOW, Account, told
from tests.faults.load.injury import AOF, Scene, disk_of, kill_server, synced
from tests.faults.load.power import own, powerless
from tests.faults.load.run import Load, expect_kept, load
from tests.support.clock import VirtualClock
from tests.support.running import BaseServer


def killed(server: BaseServer, *args: str, patience: float = 10.0) -> Account:
    """A load whose server is killed six times."""
    with own(server, *args) as victim, load(victim.url) as under_way:
        Scene(victim, under_way).repeat(6, kill_server, pause=0.15)
        return under_way.account(patience)


def test_a_killed_server(server: BaseServer) -> None:
    """FAULT-6: SIGKILL of the server under load, and a restart from its AOF, lose nothing that was answered."""
    expect_kept(killed(server, *AOF))


def test_a_killed_server_without_an_aof(one_server: BaseServer) -> None:
    """Without an AOF the same load tells of losses."""
    assert "lost" in killed(one_server, patience=1.0).wrong


def test_a_loss_of_power_with_always(server: BaseServer, tmp_path: Path) -> None:
    """FAULT-7: with `appendfsync always` a loss of power loses nothing that was answered."""
    expect_kept(powerless(server, tmp_path, "always", patience=10.0).account)


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_a_loss_of_power_with(server: BaseServer, tmp_path: Path, policy: str) -> None:
    """FAULT-7: with another policy the last writes are lost, and what is left is a queue as it was before them."""
    loss = powerless(server, tmp_path, policy)
    assert loss.bytes > 0
    assert loss.messages or loss.account.again, "nothing was lost: the disk was not cut back"
    assert loss.account.wrong.keys() <= MAY_SHOW, told(loss.account.wrong)


def test_everysec_after_the_clock_stepped_back(server: BaseServer, tmp_path: Path) -> None:
    """FAULT-7: once the server's clock has stepped back, `everysec` syncs nothing until it has caught up."""
    disk, env = disk_of(tmp_path)
    with own(server, *AOF, "--appendfsync", "everysec", env=env) as victim:
        client: Any = victim.client()

        def grows(seconds: float) -> int:
            """By how many bytes what is on the disk grows while something is written."""
            before, end = sum(synced(disk).values()), time.monotonic() + seconds
            while time.monotonic() < end:
                client.incr("written")
                time.sleep(0.01)
            return sum(synced(disk).values()) - before

        assert grows(2.2) > 0
        assert isinstance(victim.clock, VirtualClock)
        victim.clock.run_ahead(victim.clock.ahead_ms - 3_600_000)
        grows(0.1)  # what was under way
        assert grows(2.2) == 0
        victim.clock.run_ahead(victim.clock.ahead_ms + 3_600_000)
        assert grows(2.2) > 0


def polled(server: BaseServer, flaw: str = "", patience: float = 10.0) -> Account:
    """Workers that poll an empty queue while its server is restarted in good order; then there are messages."""
    with own(server, *AOF) as polled_one, load(polled_one.url, producers=0, flaw=flaw) as under_way:
        publishes_once(under_way)
        for _ in range(3):
            time.sleep(0.1)
            with contextlib.closing(polled_one.client()) as client:
                client.shutdown()
            polled_one.kill()  # what is left of it
            polled_one.restart()
        publishes_once(under_way)
        return under_way.account(patience)


def publishes_once(under_way: Load) -> None:
    """A producer comes, publishes for a while, and is killed."""
    under_way.start(producers=1, workers=0)
    time.sleep(0.3)
    producer = under_way.producers.pop()
    producer.kill()
    producer.join()


def test_a_restart_while_workers_poll(server: BaseServer) -> None:
    """FAULT-6, FAIL-8: workers that poll while the server is restarted go on, scripts and all."""
    account = polled(server)
    expect_kept(account)
    last = max(call.done for call in account.calls if call.op == "publish" and call.outcome == "done")
    assert any(call.asked > last for call in account.calls if call.op == "claim" and call.token)


def test_a_poller_that_never_reloads(one_server: BaseServer) -> None:
    """Workers that take NOSCRIPT for an error deliver nothing after a restart."""
    with pytest.raises(AssertionError):
        expect_kept(polled(one_server, "never-reloads", 1.0))
