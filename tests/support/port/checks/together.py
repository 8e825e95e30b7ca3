"""CLAIM-7c: several adapters at once on one queue, in real time; their history is judged afterwards."""

from __future__ import annotations

import random
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise

from model.operation import PREFIX, Delivery, Fault, Ok, Operation, Reply, Value
from tests.support.port.checks.rig import Rig
from tests.support.port.witness import Adapter, Port

GROUPS = 5
MESSAGES = 30  # of each group
LEASE_MS = 400
SECONDS = 60.0  # after which what is not done counts as lost
PROCESSES = (2, 8)


@dataclass
class Lease:
    """One delivery as its worker saw it, in seconds: it surely held the group from `since` until `until`."""

    group: bytes
    payload: bytes
    since: float
    until: float
    worker: int


@dataclass
class History:
    """What all workers saw."""

    leases: list[Lease] = field(default_factory=list)
    acked: list[Lease] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def check_together(port: Port) -> None:
    """Publishers and workers, each an adapter of its own: exclusive, in order, nothing lost, nothing done twice."""
    rig = Rig(port)
    for processes in PROCESSES:
        rig.reset()
        with getattr(port.host.clock, "released", nullcontext)():
            history = _run(port, processes)
        where = f"{processes} processes"
        for what in [*history.faults, *_wrong(history)]:
            rig.fail(f"{where}: {what}")
        left = rig.state()
        empty = not (left.queues or left.locks or left.prio or any(left.ready) or left.strays)
        rig.expect(empty, f"{where}: every message is acked, and keys stay: {left.to_json()}")


def _run(port: Port, processes: int) -> History:
    history = History()
    adapters = [Adapter(port.adapter.command, port.adapter.timeout_s) for _ in range(processes)]
    ports = [Port(adapter, port.host, port.level) for adapter in adapters]
    give_up = time.monotonic() + SECONDS
    workers = [
        threading.Thread(target=_work, args=(worker, number, processes, history, give_up))
        for number, worker in enumerate(ports)
    ]
    try:
        for worker in ports:
            worker.adapter.start()
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
    finally:
        for worker in ports:
            worker.adapter.end()
            worker.client.close()
    return history


def _work(port: Port, number: int, processes: int, history: History, give_up: float) -> None:
    """Publishes its share, then claims and settles until every message is acked."""
    chance = random.Random(number)
    try:
        for group in range(number, GROUPS, processes):
            for message in range(MESSAGES):
                _ask(port, "publish", group=b"g%d" % group, payload=b"%d" % message)
        claims = 0
        while len(history.acked) < GROUPS * MESSAGES and time.monotonic() < give_up:
            claims += 1
            token = b"w%d-%d" % (number, claims)
            sent = time.monotonic()
            reply = _ask(port, "claim", token=token, visibility_ms=LEASE_MS)
            if isinstance(reply, Ok) and isinstance(reply.value, Delivery):
                lease = Lease(reply.value.group, reply.value.payload, time.monotonic(), sent + LEASE_MS / 1000, number)
                history.leases.append(lease)
                _settle(port, lease, token, chance, history)
    except Unanswered as error:
        history.faults.append(str(error))


class Unanswered(Exception):
    """The port's answer is none of a queue."""


def _settle(port: Port, lease: Lease, token: bytes, chance: random.Random, history: History) -> None:
    held: dict[str, Value] = {"group": lease.group, "token": token}
    what = chance.choices(["ack", "nack", "park", "late", "renew"], [90, 4, 3, 1, 2])[0]
    if what == "late":
        time.sleep(max(0.0, lease.until - time.monotonic()) + 0.05)  # a lease that ends cannot be had without waiting
    if what == "renew" and "extend" in port.adapter.hello.capabilities:
        sent = time.monotonic()
        if _ask(port, "extend", **held, visibility_ms=LEASE_MS) == Ok(1):
            lease.until = sent + LEASE_MS / 1000
    lease.until = min(lease.until, time.monotonic())
    if what in ("nack", "park"):
        _ask(port, "nack", **held, delay_ms=5 if what == "park" else 0)
    elif _ask(port, "ack", **held) == Ok(1):
        history.acked.append(lease)


def _ask(port: Port, op: str, **args: Value) -> Reply:
    now_ms = None if "server-clock" in port.adapter.hello.capabilities else time.time_ns() // 1_000_000
    if op != "publish":
        args["now_ms"] = now_ms
    reply = port.call(Operation(op, 0, {"prefix": PREFIX, **args}))
    if not isinstance(reply, Ok):
        raise Unanswered(f"{op}: {reply.what if isinstance(reply, Fault) else reply}")
    return reply


def _wrong(history: History) -> list[str]:
    """What must not be in a history, a sentence each."""
    found = []
    due = [b"%d" % number for number in range(MESSAGES)]
    for number in range(GROUPS):
        group = b"g%d" % number
        # By the instants at which they were claimed: the threads that note an ack are not the server.
        acked = [lease.payload for lease in sorted(history.acked, key=_since) if lease.group == group]
        if sorted(acked) != sorted(set(acked)):
            found.append(f"{group!r}: a message was acked twice: {acked}")
        elif len(acked) < len(due):
            found.append(f"{group!r}: {len(due) - len(acked)} of its messages were never delivered and acked")
        elif acked != due:
            found.append(f"{group!r}: its messages were acked out of order: {acked}")
        leases = sorted((lease for lease in history.leases if lease.group == group), key=_since)
        for one, two in pairwise(leases):
            if two.since < one.until:
                who = f"the workers {one.worker} and {two.worker}"
                found.append(f"{group!r}: {who} held it at once, for {(one.until - two.since) * 1000:.0f} ms or more")
                break
    return found


def _since(lease: Lease) -> float:
    return lease.since
