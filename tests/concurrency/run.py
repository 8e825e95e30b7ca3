"""One run: workers on a real server, what is done to them, and the history that comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from model.operation import Delivery, Ok, Operation, Value
from tests.concurrency.history import History, Log, Record, read
from tests.concurrency.lane import FAULTS, Lane
from tests.concurrency.plan import LONGEST_MS, PREFIX, Answer, Call, Settings
from tests.concurrency.worker import connected, of_library
from tests.support.replay.monitor import Monitor
from tests.support.running import BaseServer

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 120.0
CUTS_PER_LANE = 3
TASKS = 3
"""Lanes of one asyncio process."""


@dataclass(frozen=True)
class Scenario:
    """Which workers there are, and what they do."""

    kinds: Sequence[str]
    """A process each: ``sync``, ``async`` (of several lanes), ``port COMMAND``, ``design NAME``."""
    settings: Settings
    kills: int = 2
    """How many processes get SIGKILL; each is followed by another of its kind."""
    cuts: bool = True


class RunError(Exception):
    """The run did not come to its end, so there is no history to judge."""


@dataclass
class Workers:
    """A process and its lanes."""

    kind: str
    lanes: list[Lane]
    process: subprocess.Popen[bytes]
    stderr: Path
    client_clock: bool


class Run:
    """A run under way."""

    def __init__(self, server: BaseServer, scenario: Scenario, folder: Path) -> None:
        self.server = server
        self.scenario = scenario
        self.folder = folder
        self.lanes: list[Lane] = []
        self.dice = Random(scenario.settings.seed)
        self.lines: list[bytes] = []

    def history(self) -> History:
        """Runs it to the end, drains the queue, and gives the history. Raises RunError."""
        with Monitor(self.server.url) as monitor:
            listening = threading.Thread(target=lambda: self.lines.extend(monitor.lines()))
            listening.start()
            try:
                self._work()
                self._drain()
                self._wait_for_lines()
            finally:
                monitor.close()
                listening.join()
                for lane in self.lanes:
                    lane.close()
        records = [record for lane in self.lanes for record in self._read(lane)]
        addresses = {address: lane.name for lane in self.lanes for address in lane.addresses}
        return History(records, self.lines, addresses)

    @property
    def injected(self) -> Counter[str]:
        """What was done to the workers."""
        return Counter(fault for lane in self.lanes for _, fault in lane.injected)

    def _work(self) -> None:
        kinds = self.scenario.kinds
        doomed = set(self.dice.sample(range(len(kinds)), min(self.scenario.kills, len(kinds))))
        running = [self._start(kind, number, number in doomed) for number, kind in enumerate(kinds)]
        end = time.monotonic() + LIMIT_SECONDS
        while running:
            for workers in list(running):
                code = workers.process.poll()
                if code is None:
                    continue
                running.remove(workers)
                if code == -9:
                    running.append(self._start(workers.kind, len(self.lanes), doomed=False))
                elif code != 0:
                    self._stop(running)
                    raise RunError(f"{workers.kind} ended with exit code {code}: {workers.stderr.read_text()[-2000:]}")
            if time.monotonic() > end:
                self._stop(running)
                raise RunError(f"after {LIMIT_SECONDS:.0f} s these still ran: {[each.kind for each in running]}")
            time.sleep(0.02)

    @staticmethod
    def _stop(running: list[Workers]) -> None:
        for workers in running:
            workers.process.kill()
            workers.process.wait()

    def _start(self, kind: str, number: int, doomed: bool) -> Workers:
        names = [f"{kind.split('/')[-1].split(' ')[-1]}-{number}{chr(97 + task)}" for task in range(TASKS)]
        # A client that repeats calls by itself may publish twice, or be told 0 after its own ack (FAIL-1, FAIL-3). It
        # is cut off before the server sees the call, where a repetition does no harm.
        cuts = FAULTS[:1] if kind.startswith("port ") else FAULTS[:2]
        lanes = [self._lane(name, cuts) for name in (names if kind == "async" else names[:1])]
        if doomed:
            at = self.dice.randrange(20, max(21, self.scenario.settings.operations // 2))
            lanes[0].faults = {**lanes[0].faults, at: "kill"}
        client_clock = kind == "sync" and number % 2 == 1
        config = {
            "kind": kind,
            "settings": asdict(self.scenario.settings),
            "folder": str(self.folder),
            "lanes": {lane.name: lane.url for lane in lanes},
            "client_clock": client_clock,
        }
        stderr = self.folder / f"{lanes[0].name}.stderr"
        with stderr.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.concurrency.worker", json.dumps(config)],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stderr=errors,
            )
        for lane in lanes:
            lane.pid = process.pid
        return Workers(kind, lanes, process, stderr, client_clock)

    def _lane(self, name: str, cuts: Sequence[str]) -> Lane:
        plan: dict[int, str] = {}
        if self.scenario.cuts:
            operations = self.scenario.settings.operations
            for at in self.dice.sample(range(2, operations), min(CUTS_PER_LANE, operations - 2)):
                plan[at] = self.dice.choice(cuts)
        lane = Lane(name, self.server.url, plan)
        self.lanes.append(lane)
        return lane

    def _drain(self) -> None:
        """Waits until every lease and park has ended, then claims and acks until there is nothing more."""
        lane = Lane("drain", self.server.url, {})
        self.lanes.append(lane)
        time.sleep(LONGEST_MS / 1000)
        with connected(lane.url) as client, closing(Log(self.folder / "drain.log")) as log:
            self._empty(log, of_library(client, False))

    def _empty(self, log: Log, call: Callable[[Call], Answer]) -> None:
        number = 0
        while True:
            number += 1
            claim = self._operation("claim", token=b"drain", visibility_ms=30_000, candidates=99, min_priority=0)
            reply, token = self._logged(log, call, number, claim)
            match reply:
                case Ok(Delivery(group, _)):
                    number += 1
                    self._logged(log, call, number, self._operation("ack", group=group, token=token))
                case _:
                    return

    @staticmethod
    def _operation(op: str, **args: Value) -> Operation:
        return Operation(op, 0, {"prefix": PREFIX, **args})

    @staticmethod
    def _logged(log: Log, call: Callable[[Call], Answer], number: int, operation: Operation) -> Answer:
        log.invoked(number, operation, time.monotonic_ns())
        reply, token = call(Call(operation))
        log.completed(number, reply, token, time.monotonic_ns())
        return reply, token

    def _wait_for_lines(self) -> None:
        """Until MONITOR has told of a command sent now: everything before it is there, too."""
        mark = b"all-told-%d" % os.getpid()
        with self.server.client() as client:
            client.execute_command("ECHO", mark)
        end = time.monotonic() + 10
        while not any(mark in line for line in self.lines[-50:]):
            if time.monotonic() > end:
                raise RunError("MONITOR fell behind")
            time.sleep(0.01)

    def _read(self, lane: Lane) -> list[Record]:
        path = self.folder / f"{lane.name}.log"
        with path.open(encoding="utf-8") as lines:
            return read(lane.name, lines)
