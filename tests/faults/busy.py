"""A busy queue: processes that publish, claim and settle, and the account of what they did."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from redisq import RedisTransport
from tests.faults.transports import sync_client

PREFIX = "busy"
GROUPS = 12
VISIBILITY = 600.0
"""Seconds; longer than any load, so that a lease that is refused was taken away."""
JOIN_SECONDS = 60.0
WORK = (0.0, 0.0, 0.002, 0.005)
"""Seconds that the work on a message takes, one of these: what happens to a lease must find it held."""
_fork = multiprocessing.get_context("fork")


@dataclass
class Account:
    """What was published, by group in order; what was acked, in order; and settlements that were refused."""

    published: dict[str, list[str]] = field(default_factory=dict)
    acked: dict[str, list[str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def wrong(self) -> list[str]:
        """What is not as it must be, once the queue has been drained."""
        lost = [
            f"{group}: published {messages}, acked {self.acked.get(group)}"
            for group, messages in self.published.items()
            if self.acked.get(group) != messages
        ]
        return lost + [f"refused: {what}" for what in self.refused]


def _produce(url: str, name: str, messages: int, told: Any) -> None:
    queue, dice = RedisTransport(sync_client(url), PREFIX), Random(name)
    for number in range(messages):
        group = f"{name}-{dice.randrange(GROUPS)}"  # of this producer alone, so that the order is its own
        queue.publish(group, str(number), dice.randrange(5))
        told.put(("published", group, str(number)))


def _work(url: str, name: str, done: Any, told: Any) -> None:
    queue, dice = RedisTransport(sync_client(url), PREFIX), Random(name)
    while True:
        last = done.is_set()
        lease = queue.claim(VISIBILITY, worker_id=name)
        if lease is None:
            if last:
                return
            continue
        time.sleep(dice.choice(WORK))
        if dice.random() < 0.2 and queue.extend(lease, VISIBILITY) is None:
            told.put(("refused", lease.group, "extend"))
        if dice.random() < 0.2:
            settled = queue.nack(lease)
            told.put(("nacked" if settled else "refused", lease.group, "nack"))
        else:
            # Told before: another worker may ack the next one before this process goes on.
            told.put(("acked", lease.group, lease.text))
            if not queue.ack(lease):
                told.put(("refused", lease.group, f"ack of {lease.text}"))


@contextmanager
def busy(url: str, messages: int = 300, producers: int = 2, workers: int = 3) -> Iterator[tuple[Any, Account]]:
    """A load under way: an event that is set when the last message is published, and the account to be filled.

    At the end of the block the workers go on until a claim finds nothing.
    """
    account, told, published, drain = Account(), _fork.SimpleQueue(), _fork.Event(), _fork.Event()
    makers = [_fork.Process(target=_produce, args=(url, f"p{n}", messages, told)) for n in range(producers)]
    takers = [_fork.Process(target=_work, args=(url, f"w{n}", drain, told)) for n in range(workers)]

    def ends() -> None:
        for maker in makers:
            maker.join(JOIN_SECONDS)
        published.set()

    reader = threading.Thread(target=_read, args=(told, account))
    waiter = threading.Thread(target=ends)
    for process in (*makers, *takers):
        process.start()
    reader.start()
    waiter.start()
    try:
        yield published, account
        waiter.join()
    finally:
        drain.set()
        for process in (*makers, *takers):
            process.join(JOIN_SECONDS)
            process.kill()
        told.put(None)
        reader.join()
    assert [process.exitcode for process in (*makers, *takers)] == [0] * (producers + workers)


def _read(told: Any, account: Account) -> None:
    while (event := told.get()) is not None:
        what, group, text = event
        if what == "refused":
            account.refused.append(f"{text} of {group}")
        elif what != "nacked":
            getattr(account, what).setdefault(group, []).append(text)
