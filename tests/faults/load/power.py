"""A server that loses power under load: what is on its disk, and what that costs."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.load.account import Account
from tests.faults.load.injury import AOF, Scene, disk_of, logs, lose_power, real_time, synced
from tests.faults.load.run import WORKERS, load
from tests.faults.topology import until
from tests.support.running import BaseServer
from tests.support.servers import Server

POLICIES = ("always", "everysec", "no")


@contextlib.contextmanager
def own(server: BaseServer, *args: str, env: dict[str, str] | None = None) -> Iterator[Server]:
    """One more of its kind, as a process of ours, which alone can be killed and started again."""
    if not isinstance(server, Server):
        pytest.skip(f"{server.name}: only a process of our own is killed and started again, and its disk cut back")
    with Server(server.binary, args, env) as started, real_time(started):
        yield started


@dataclass(frozen=True)
class Loss:
    """A loss of power under load, and what it took."""

    account: Account
    bytes: int
    """Of the AOF."""
    at: int
    """When, in nanoseconds as in the journals."""

    @property
    def messages(self) -> int:
        """How many that were stored, for publish was answered, are gone."""
        return len(self.account.lost)

    @property
    def longest_ms(self) -> int:
        """How long before the loss the oldest of them was answered; milliseconds."""
        lost = {line.partition(" ")[0] for line in self.account.lost}
        answered = [call.done for call in self.account.calls if call.op == "publish" and call.text in lost]
        return max(((self.at - at) // 1_000_000 for at in answered), default=0)


def powerless(
    server: BaseServer,
    folder: Path,
    policy: str,
    *,
    seconds: float = 0.5,
    patience: float = 2.0,
    workers: int = WORKERS,
) -> Loss:
    """A load whose server loses power after so long, while something was written that was not synced."""
    disk, env = disk_of(folder)
    with own(server, *AOF, "--appendfsync", policy, env=env) as victim, load(victim.url, workers=workers) as under_way:
        scene = Scene(victim, under_way, disk=disk)
        time.sleep(seconds)
        if policy != "always":
            until(lambda: unsynced(victim, disk) > 2000, "something is written that is not synced")
        at = time.monotonic_ns()
        lose_power(scene)
        time.sleep(0.3)
        return Loss(under_way.account(patience), scene.counts["bytes lost"], at)


def unsynced(server: Server, disk: Path) -> int:
    """How many bytes of the AOF a loss of power would take."""
    kept = synced(disk)
    return sum(path.stat().st_size - kept.get(path, 0) for path in logs(server))


def measure(server: BaseServer, times: int = 5) -> dict[str, list[int]]:
    """By policy, of so many losses of power: the most messages that one took, and the longest time in milliseconds.

    Nobody claims, so that every message that was published is there to be lost.
    """
    measured: dict[str, list[int]] = {}
    for policy in POLICIES:
        losses = []
        for number in range(times):
            with tempfile.TemporaryDirectory(prefix="redisq-disk-") as folder:
                losses.append(powerless(server, Path(folder), policy, seconds=2 + number / times, workers=0))
        measured[policy] = [max(loss.messages for loss in losses), max(loss.longest_ms for loss in losses)]
    return measured
