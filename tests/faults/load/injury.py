"""What is done to a load and to its server. Each of these does one thing once, and then lets everything go on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import redis

from tests.faults.load.run import Load
from tests.faults.proxy import Proxy
from tests.faults.transports import sync_client
from tests.support import preload
from tests.support.clock import VirtualClock
from tests.support.running import BaseServer
from tests.support.servers import Server

HOUR_MS = 3_600_000
PATIENCE_SECONDS = 10.0
AOF = ("--appendonly", "yes", "--auto-aof-rewrite-percentage", "0")


@dataclass
class Scene:
    """A load on a server, and what lies between; `counts`: how often what was done."""

    server: BaseServer
    load: Load
    proxy: Proxy | None = None
    disk: Path | None = None
    """What the server has synced: see `synced`."""
    counts: Counter[str] = field(default_factory=Counter)
    done: int = 0

    def __post_init__(self) -> None:
        self.admin: Any = self.server.client(**sync_client(self.server.url, 3).get_connection_kwargs())
        self.dice = Random(0)
        """For what is under way: each injury has dice of its own, so that the next does not depend on it."""

    def injure(self, *injuries: Callable[[Scene], None], pause: float = 0.02) -> None:
        """One of these, after a while: which one, when and how is decided by the seed and how many there were."""
        self.done += 1
        self.dice = Random(f"{self.load.settings.seed}/injury/{self.done}")
        time.sleep(self.dice.uniform(0, 2 * pause))
        injury = self.dice.choice(injuries)
        injury(self)
        self.counts[injury.__name__] += 1

    def repeat(self, times: int, *injuries: Callable[[Scene], None], pause: float = 0.02) -> None:
        """So many of them, one after the other."""
        for _ in range(times):
            self.injure(*injuries, pause=pause)


@contextlib.contextmanager
def real_time(*servers: BaseServer) -> Iterator[None]:
    """The clocks of these servers run, as those of servers under load must, from the instant at which they stand.

    Not from that of the machine: `appendfsync everysec` syncs nothing while a clock is behind what it was.
    """
    with contextlib.ExitStack() as stack:
        for server in servers:
            if isinstance(server.clock, VirtualClock):
                server.clock.run_ahead(server.clock.now_ms() - time.time_ns() // 1_000_000)
                stack.enter_context(server.clock.released())
        yield


def kill_worker(scene: Scene) -> None:
    """SIGKILL of a worker, at whatever point it is."""
    scene.load.kill_a_worker(scene.dice)


def kill_connection(scene: Scene) -> None:
    """CLIENT KILL of one connection."""
    others = [client["id"] for client in scene.admin.client_list() if client["id"] != str(scene.admin.client_id())]
    if others:
        scene.admin.execute_command("CLIENT", "KILL", "ID", scene.dice.choice(others))


def flush_scripts(scene: Scene) -> None:
    """The server forgets every script."""
    scene.admin.script_flush()


def squeeze(scene: Scene) -> None:
    """maxmemory falls below what is used, or just above it, and is lifted again."""
    used = scene.admin.info("memory")["used_memory"]
    scene.admin.config_set("maxmemory", int(used * scene.dice.uniform(0.5, 1.01)))
    time.sleep(scene.dice.uniform(0, 0.06))
    scene.admin.config_set("maxmemory", 0)


def keep_busy(scene: Scene) -> None:
    """Somebody's script does not end; every call is answered BUSY until it is killed."""
    scene.admin.config_set("lua-time-limit", 5)
    client: Any = sync_client(scene.server.url)
    with contextlib.closing(client):

        def run() -> None:
            with contextlib.suppress(redis.RedisError):
                client.execute_command("EVAL", "while true do end", 0)

        endless = threading.Thread(target=run)
        endless.start()
        time.sleep(0.05)
        while endless.is_alive():
            with contextlib.suppress(redis.ResponseError):  # NOTBUSY: it has not begun, or was killed just now
                scene.admin.script_kill()
            endless.join(0.005)


def jump_ahead(scene: Scene) -> None:
    """The server's clock goes an hour forwards: every lease and park ends at once."""
    clock = _virtual(scene)
    clock.run_ahead(clock.ahead_ms + HOUR_MS)


def jump_back(scene: Scene) -> None:
    """The server's clock goes an hour backwards, and catches up a while later."""
    clock = _virtual(scene)
    ahead_ms = clock.ahead_ms
    clock.run_ahead(ahead_ms - HOUR_MS)
    time.sleep(0.1)
    clock.run_ahead(ahead_ms)


def _virtual(scene: Scene) -> VirtualClock:
    assert isinstance(scene.server.clock, VirtualClock), scene.server.clock.reason
    return scene.server.clock


def lose_request(scene: Scene) -> None:
    """The network is cut before a script reaches the server."""
    _cut(scene, "lose_request")


def lose_reply(scene: Scene) -> None:
    """The network is cut after a script ran, before its reply arrives."""
    _cut(scene, "lose_reply")


def _cut(scene: Scene, how: str) -> None:
    assert scene.proxy is not None
    getattr(scene.proxy, how)()
    assert scene.proxy.happened.wait(PATIENCE_SECONDS), f"{how}: no script came by"


def hold_replies(scene: Scene) -> None:
    """Replies are on their way for longer than the clients wait."""
    assert scene.proxy is not None
    scene.proxy.hold_replies()
    time.sleep(scene.load.settings.timeout * 1.5)
    scene.proxy.release()


def kill_server(scene: Scene) -> None:
    """SIGKILL of the server; it is started again, from its AOF."""
    _own(scene).kill()
    time.sleep(scene.dice.uniform(0, 0.05))
    _own(scene).restart()


def lose_power(scene: Scene) -> None:
    """The server and its machine lose power: what was not synced to the disk is gone. Then it is started again."""
    assert scene.disk is not None
    _own(scene).kill()
    scene.counts["bytes lost"] += cut_back(_own(scene), scene.disk)
    _own(scene).restart()


def _own(scene: Scene) -> Server:
    assert isinstance(scene.server, Server)
    return scene.server


def disk_of(folder: Path) -> tuple[Path, dict[str, str]]:
    """Where a server will note what it has synced, and the environment that makes it do so. See `fsync.c`."""
    library, reason = preload.library(preload.FSYNC)
    assert library is not None, reason
    disk = folder / "synced"
    return disk, {"LD_PRELOAD": str(library), preload.FSYNC_VARIABLE: str(disk)}


def synced(disk: Path) -> dict[Path, int]:
    """How many bytes of each file are on the disk for good."""
    lines = disk.read_text(encoding="utf-8").splitlines() if disk.exists() else []
    return {Path(path): int(size) for size, _, path in (line.partition(" ") for line in lines)}


def logs(server: Server) -> list[Path]:
    """The files that the AOF grows in, by version of the server."""
    return [*server.data.glob("appendonly.aof"), *server.data.glob("appendonlydir/*.incr.aof")]


def cut_back(server: Server, disk: Path) -> int:
    """Cuts the AOF of a dead server back to what was synced; how many bytes are gone."""
    kept, gone = synced(disk), 0
    for path in logs(server):
        whole, size = path.stat().st_size, kept.get(path, 0)
        gone += whole - size
        with path.open("r+b") as file:
            file.truncate(size)
    return gone
