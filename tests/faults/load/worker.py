"""What each process of a load does: it publishes, or it claims and settles, and goes on after every error."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import redis

import redisq.scripts
from redisq import Lease, batch
from redisq.scripts import NAMES, Script
from tests.faults.load.journal import Journal, Outcome
from tests.faults.transports import transport

STOP = "stop"
"""While no file of this name is in the folder of the load, it goes on."""
GROUPS = 12
PACE = (0.0, 0.001, 0.003)
"""Seconds between two publishes, one of these."""
WORK = (0.0, 0.0, 0.001, 0.004)
"""Seconds that the work on a message takes."""
REST = 0.005
"""Seconds after an error, and after a claim that found nothing."""


@dataclass(frozen=True)
class Settings:
    """How the processes of a load work."""

    url: str
    folder: str
    seed: str = "1"
    visibility: float = 0.3
    """Seconds of a lease."""
    slow: float = 0.003
    """How often the work outlives its lease."""
    retries: int = 0
    """How often the client repeats a call by itself."""
    timeout: float = 5.0
    """Seconds after which the client gives a call up."""
    scripts: str = ""
    """A folder with other scripts than the package's, for a control."""
    flaw: str = ""
    """What this client gets wrong, for a control: see `spoil`."""


def spoil(settings: Settings) -> None:
    """Makes this process the one that a control needs."""
    if settings.scripts:
        for name in NAMES:
            redisq.scripts.SCRIPTS[name] = Script.read(Path(settings.scripts), name)
    if settings.flaw == "never-reloads":
        batch.is_noscript = lambda reply: False
    elif settings.flaw:
        assert settings.flaw == "takes-errors-for-done"


class Diary:
    """Makes calls, and writes down what came of them."""

    def __init__(self, settings: Settings, name: str) -> None:
        self._settings = settings
        self._journal = Journal(Path(settings.folder) / f"{name}.journal")

    def publish(self, queue: Any, group: str, text: str, priority: int) -> None:
        """Writes down whether it was stored."""
        number = self._journal.ask("publish", group, text)
        if self._made(number, lambda: queue.publish(group, text, priority)) is not None:
            self._journal.answer(number, "done")

    def claim(self, queue: Any, name: str) -> Lease | None:
        """The lease, if there was one and it is known."""
        number = self._journal.ask("claim")
        answer = self._made(number, lambda: (queue.claim(self._settings.visibility, worker_id=name),))
        if answer is None:
            return None
        lease: Lease | None = answer[0]
        if lease is None:
            self._journal.answer(number, "not")
        else:
            self._journal.answer(number, "done", lease=(lease.group, lease.text, lease.token))
        return lease

    def ack_and_claim(self, queue: Any, lease: Lease, name: str) -> Lease | None:
        """The same in one round trip with an ack."""
        ack, claim = self._journal.ask("ack", lease.group, lease.text, lease.token), self._journal.ask("claim")
        try:
            acked, taken = queue.ack_and_claim(lease, self._settings.visibility, worker_id=name)
        except redis.RedisError as error:
            acked, taken = getattr(error, "acked", None), getattr(error, "lease", None)
            if acked is None:
                self._failed(ack, error)
            if taken is None:
                self._failed(claim, error)
            time.sleep(REST)
        else:
            if taken is None:
                self._journal.answer(claim, "not")
        if acked is not None:
            self._settled(ack, acked)
        if taken is not None:
            self._journal.answer(claim, "done", lease=(taken.group, taken.text, taken.token))
        return taken if isinstance(taken, Lease) else None

    def settle(self, queue: Any, op: str, lease: Lease, *args: float) -> None:
        """An ack, a nack or an extend."""
        number = self._journal.ask(op, lease.group, lease.text, lease.token)
        answer = self._made(number, lambda: (getattr(queue, op)(lease, *args),))
        if answer is not None:
            self._settled(number, answer[0])

    def _settled(self, number: int, answer: object) -> None:
        if answer or self._settings.retries == 0:
            self._journal.answer(number, "done" if answer else "not")
        else:
            self._journal.answer(number, "unknown", "False, by a client that repeats calls")

    def _made(self, number: int, call: Callable[[], Any]) -> Any:
        """What the call returns; None after an error, which is written down."""
        try:
            return call()
        except redis.RedisError as error:
            self._failed(number, error)
            time.sleep(REST)
            return None

    def _failed(self, number: int, error: redis.RedisError) -> None:
        flawed = self._settings.flaw == "takes-errors-for-done"
        self._journal.answer(number, "done" if flawed else outcome_of(error), f"{type(error).__name__}: {error}")


def outcome_of(error: redis.RedisError) -> Outcome:
    """What is known after an error: whatever the server answered, it did nothing."""
    answered = isinstance(error, (redis.ResponseError, redis.exceptions.BusyLoadingError))
    return "refused" if answered else "unknown"


def produce(settings: Settings, name: str) -> None:
    """Publishes to groups of its own, so that their order is its own."""
    spoil(settings)
    dice, diary, stop = Random(f"{settings.seed}/{name}"), Diary(settings, name), Path(settings.folder) / STOP
    number = 0
    with transport(_kind(name), settings.url, settings.retries, socket_timeout=settings.timeout) as queue:
        while not stop.exists():
            number += 1
            diary.publish(queue, f"{name}-{dice.randrange(GROUPS)}", f"{name}/{number}", dice.randrange(5))
            time.sleep(dice.choice(PACE))


def work(settings: Settings, name: str) -> None:
    """Claims and settles."""
    spoil(settings)
    dice, diary, stop = Random(f"{settings.seed}/{name}"), Diary(settings, name), Path(settings.folder) / STOP
    lease: Lease | None = None
    with transport(_kind(name), settings.url, settings.retries, socket_timeout=settings.timeout) as queue:
        while not stop.exists():
            lease = lease or diary.claim(queue, name)
            if lease is None:
                time.sleep(REST)
                continue
            time.sleep(settings.visibility * 1.2 if dice.random() < settings.slow else dice.choice(WORK))
            lease = _settle(diary, queue, lease, dice, name)
        if lease is not None:
            diary.settle(queue, "ack", lease)


def _settle(diary: Diary, queue: Any, lease: Lease, dice: Random, name: str) -> Lease | None:
    """What is done with a lease; the next one, if that came with it."""
    if dice.random() < 0.15:
        diary.settle(queue, "extend", lease, lease.visibility)
    how = dice.random()
    if how < 0.3:
        return diary.ack_and_claim(queue, lease, name)
    if how < 0.8:
        diary.settle(queue, "ack", lease)
    else:
        diary.settle(queue, "nack", lease, dice.choice((0.0, 0.0, 0.02)))
    if dice.random() < 0.1:
        diary.settle(queue, "ack", lease)  # of a lease that is settled
    return None


def _kind(name: str) -> str:
    """Every second process uses the asyncio transport."""
    return ("sync", "async")[int(name[1:]) % 2]
