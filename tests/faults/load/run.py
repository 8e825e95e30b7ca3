"""The processes of a load: started, killed, followed by others, stopped; and the queue drained in the end."""

from __future__ import annotations

import contextlib
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import redis

from redisq import RedisTransport
from tests.faults.load.account import Account, told
from tests.faults.load.journal import read
from tests.faults.load.worker import STOP, Diary, Settings, produce, work
from tests.faults.transports import sync_client

# Each process is forked from one that has no threads and has imported what they need.
_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["tests.faults.load.worker", "redis.asyncio"])

PRODUCERS, WORKERS = 2, 3
JOIN_SECONDS = 30.0
DRAIN_SECONDS = 10.0
"""How long the queue may stay as it is before what is in it counts as stuck; leases and parks are shorter."""


@dataclass
class Load:
    """A load under way. `direct` reaches the server past whatever lies between it and the processes."""

    settings: Settings
    direct: str
    folder: Path
    producers: list[BaseProcess] = field(default_factory=list)
    workers: list[BaseProcess] = field(default_factory=list)
    started: int = 0

    def start(self, producers: int, workers: int) -> None:
        """So many more of each."""
        self.producers += [self._start(produce, "p") for _ in range(producers)]
        self.workers += [self._start(work, "w") for _ in range(workers)]

    def kill_a_worker(self, dice: Random) -> None:
        """SIGKILL for one of them, wherever it is; another one comes."""
        victim = self.workers.pop(dice.randrange(len(self.workers)))
        victim.kill()
        victim.join()
        self.workers.append(self._start(work, "w"))

    def stop(self) -> None:
        """The processes end after the call that they are at. Raises AssertionError if one failed."""
        (self.folder / STOP).touch()
        everyone = self.producers + self.workers
        for process in everyone:
            process.join(JOIN_SECONDS)
            if process.exitcode is None:
                process.kill()
                process.join()
        codes = [process.exitcode for process in everyone]
        assert codes == [0] * len(codes), f"a process ended by itself, or not at all: {codes}"

    def drain(self, patience: float = DRAIN_SECONDS) -> list[str]:
        """Claims and acks until nothing is delivered and no key is left, or nothing moves any more; the keys left."""
        diary = Diary(self.settings, "drain")
        with contextlib.closing(sync_client(self.direct)) as client:
            queue, moved = RedisTransport(client), time.monotonic()
            while time.monotonic() < moved + patience:
                if (lease := diary.claim(queue, "drain")) is not None:
                    diary.settle(queue, "ack", lease)
                    moved = time.monotonic()
                elif not any(client.scan_iter("redisq:*", count=1000)):
                    return []
                else:
                    time.sleep(0.01)
            return sorted(key.decode("utf-8", "replace") for key in client.scan_iter("redisq:*", count=1000))

    def account(self, patience: float = DRAIN_SECONDS) -> Account:
        """Stops, drains, and judges. `patience`: seconds, as `DRAIN_SECONDS`."""
        self.stop()
        left = self.drain(patience)
        return Account(read(self.folder), left, repeats=self.settings.retries > 0)

    @staticmethod
    def wait_until(happens: Callable[[], bool], patience: float = DRAIN_SECONDS) -> bool:
        """Gives the processes so many seconds for it; whether it happened."""
        give_up = time.monotonic() + patience
        while not happens():
            if time.monotonic() > give_up:
                return False
            time.sleep(0.01)
        return True

    def _start(self, target: object, letter: str) -> BaseProcess:
        name = f"{letter}{self.started}"
        self.started += 1
        process = _server.Process(target=target, args=(self.settings, name), daemon=True)  # type: ignore[arg-type]
        process.start()
        return process


@contextlib.contextmanager
def load(
    direct: str, url: str = "", producers: int = PRODUCERS, workers: int = WORKERS, **settings: object
) -> Iterator[Load]:
    """A load on the server at `direct`, through `url` if something lies between; `settings` as `Settings` has them."""
    with tempfile.TemporaryDirectory(prefix="redisq-load-") as folder:
        made = Settings(url or direct, folder, **settings)  # type: ignore[arg-type]
        under_way = Load(made, direct, Path(folder))
        try:
            under_way.start(producers, workers)
            yield under_way
        finally:
            for process in under_way.producers + under_way.workers:
                process.kill()
                process.join()


def expect_kept(account: Account) -> None:
    """Every promise was kept, and there was something to keep it for."""
    assert account.outcomes()["done"] > 100, account.outcomes()
    assert not account.wrong, told(account.wrong)


def is_up(url: str) -> bool:
    """Whether the server answers."""
    with contextlib.closing(sync_client(url)) as client, contextlib.suppress(redis.RedisError):
        return bool(client.ping())
    return False
