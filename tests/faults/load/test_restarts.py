"""Servers that are killed, restarted, or lose power while they are used."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.load.account import MAY_SHOW, Account, told
from tests.faults.load.injury import AOF, Scene, disk_of, kill_server, logs, lose_power, real_time, synced
from tests.faults.load.run import Load, expect_kept, load
from tests.faults.topology import until
from tests.support.running import BaseServer
from tests.support.servers import Server


@contextlib.contextmanager
def own(server: BaseServer, *args: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    """One more of its kind, as a process of ours, which alone can be killed and started again."""
    if not isinstance(server, Server):
        pytest.skip(f"{server.name}: only a process of our own is killed and started again, and its disk cut back")
    with Server(server.binary, args, env) as started, real_time(started):
        yield started


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


def powerless(server: BaseServer, folder: Path, policy: str, patience: float = 10.0) -> tuple[Account, int]:
    """A load whose server loses power once, while something was written that was not synced; how many bytes it lost."""
    disk, env = disk_of(folder)
    with own(server, *AOF, "--appendfsync", policy, env=env) as victim, load(victim.url) as under_way:
        scene = Scene(victim, under_way, disk=disk)
        time.sleep(0.5)
        if policy != "always":
            until(lambda: unsynced(victim, disk) > 2000, "something is written that is not synced")
        scene.repeat(1, lose_power)
        time.sleep(0.3)
        return under_way.account(patience), scene.counts["bytes lost"]


def unsynced(server: Server, disk: Path) -> int:
    """How many bytes of the AOF a loss of power would take."""
    kept = synced(disk)
    return sum(path.stat().st_size - kept.get(path, 0) for path in logs(server))


def test_a_loss_of_power_with_always(server: BaseServer, tmp_path: Path) -> None:
    """FAULT-7: with `appendfsync always` a loss of power loses nothing that was answered."""
    account, _ = powerless(server, tmp_path, "always")
    expect_kept(account)


@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_a_loss_of_power_with(server: BaseServer, tmp_path: Path, policy: str) -> None:
    """FAULT-7: with another policy the last writes are lost, and what is left is a queue as it was before them."""
    account, lost_bytes = powerless(server, tmp_path, policy, patience=2.0)
    assert lost_bytes > 0
    assert account.lost or account.again, "nothing was lost: the disk was not cut back"
    assert account.wrong.keys() <= MAY_SHOW, told(account.wrong)


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
