"""CLAIM-7c: several adapters at once on one queue, in real time; their history is judged afterwards.

A worker knows only when it sent something and when the answer had come. What it says of a lease is chosen so that the
server cannot see it otherwise: a lease begins when the claim was answered, and ends a little before its visibility,
counted from when the claim was sent.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise

from model.notation import quoted, write_reply
from model.operation import PREFIX, Delivery, Fault, Ok, Operation, Reply, Value
from tests.support.clock import server_ms
from tests.support.outcome import kind_of
from tests.support.port.checks.rig import Rig
from tests.support.port.messages import Hello
from tests.support.port.process import PortError
from tests.support.port.witness import Adapter, Port

PROCESSES = (2, 8)
GROUPS = 5
MESSAGES = 30  # of each group
LEASE_MS = 400
WORK_S = 0.004  # at most, on one message: long enough that two at once are seen
SLACK_MS = 20  # more than a server's clock lags behind, or is set right by
STALLED_S = 10.0  # when nothing was acked for so long, what is left counts as lost
NIL = Ok(None)
SHOWN = 8  # leases around what is wrong
# What becomes of a lease, and how often. A late one is settled when it has surely ended.
FATES = {"ack": 88, "nack": 4, "park": 3, "renew": 2, "late ack": 2, "late nack": 1}


@dataclass
class Lease:
    """One delivery as its worker saw it, in seconds: it surely held the group from ``since`` until ``until``."""

    worker: int
    group: bytes
    payload: bytes
    since: float
    until: float
    fate: str
    settled: Reply = NIL
    acked: bool = False


class NoAnswer(Exception):
    """The port's answer is none that a queue in order gives."""

    def __init__(self, reply: Reply, what: str) -> None:
        super().__init__(what)
        self.kind = kind_of(reply, agrees=False) if isinstance(reply, Fault) else "check"


@dataclass
class History:
    """What all workers saw, from ``start``."""

    start: float = field(default_factory=time.monotonic)
    leases: list[Lease] = field(default_factory=list)
    failures: list[NoAnswer] = field(default_factory=list)
    acks: list[float] = field(default_factory=list)

    def of(self, group: bytes) -> list[Lease]:
        """The leases of a group, by the instant from which on each surely held it."""
        return sorted((lease for lease in self.leases if lease.group == group), key=lambda lease: lease.since)

    def goes_on(self) -> bool:
        """Whether there is something left to do, and hope."""
        stalled = time.monotonic() > (self.acks[-1] if self.acks else self.start) + STALLED_S
        return len(self.acks) < GROUPS * MESSAGES and not stalled and not self.failures


def check_together(rig: Rig) -> None:
    """Publishers and workers, each an adapter of its own: exclusive, in order, nothing lost, nothing done twice."""
    for processes in PROCESSES:
        rig.admin.flushdb()
        with getattr(rig.port.host.clock, "released", nullcontext)():
            history = _run(rig.port, processes)
            keys = sorted(rig.admin.keys())
        where = f"{processes} processes at once"
        for failure in history.failures:
            rig.fail(f"{where}: {failure}", failure.kind)
        for judge in JUDGES:
            for group in _groups():
                what, shown = judge(history.of(group))
                rig.lines[:] = [_line(lease, history.start) for lease in shown]
                rig.expect(not what, f"{where}: group {quoted(group)}: {what}")
        rig.expect(not keys, f"{where}: every message is acked, and keys stay: {keys}")


def _groups() -> list[bytes]:
    return [b"g%d" % number for number in range(GROUPS)]


def _run(port: Port, processes: int) -> History:
    adapters = [Adapter(port.adapter.command, port.adapter.timeout_s) for _ in range(processes)]
    ports = [Port(adapter, port.host, port.level) for adapter in adapters]
    try:
        for each in ports:
            each.adapter.start()
            each.open(PREFIX)
        history = History()
        workers = [_Worker(number, each, history, _groups()[number::processes]) for number, each in enumerate(ports)]
        threads = [threading.Thread(target=worker.work) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for each in ports:
            each.adapter.end()
            each.client.close()
    return history


class _Worker:
    """Publishes to some groups, and claims and settles from all, until every message is acked."""

    def __init__(self, number: int, port: Port, history: History, groups: Sequence[bytes]) -> None:
        self.number = number
        self.port = port
        self.hello: Hello = port.adapter.hello
        self.history = history
        self.due = [(group, b"%d" % message) for message in range(MESSAGES) for group in groups]
        self.random = random.Random(number)
        self.claims = 0

    def work(self) -> None:
        """In a thread of its own."""
        try:
            while self.history.goes_on():
                # Not all at once, so that groups are drained and come again.
                if self.due and self.random.random() < 0.5:
                    group, payload = self.due.pop(0)
                    self.ask("publish", group=group, payload=payload, priority=_groups().index(group))
                else:
                    self.claim()
        except NoAnswer as failure:
            self.history.failures.append(failure)
        except PortError as error:
            self.history.failures.append(NoAnswer(Fault(str(error)), str(error)))

    def claim(self) -> None:
        """Claims, and settles what it gets."""
        self.claims += 1
        token = b"w%d-%d" % (self.number, self.claims)
        sent = time.monotonic()
        reply = self.ask("claim", token=token, visibility_ms=LEASE_MS)
        if reply == NIL:
            return
        if not isinstance(reply, Ok) or not isinstance(reply.value, Delivery):
            raise NoAnswer(reply, f"claim answers {write_reply(reply)}")
        fate = self.random.choices(list(FATES), list(FATES.values()))[0]
        group, payload = reply.value.group, reply.value.payload
        lease = Lease(self.number, group, payload, time.monotonic(), sent + (LEASE_MS - SLACK_MS) / 1000, fate)
        self.history.leases.append(lease)
        self.settle(lease, {"group": group, "token": token})

    def settle(self, lease: Lease, held: dict[str, Value]) -> None:
        """Does with the lease what was chosen."""
        if lease.fate.startswith("late"):
            ended = lease.since + (LEASE_MS + SLACK_MS) / 1000
            time.sleep(max(0.0, ended - time.monotonic()))  # in real time nothing else lets a lease end
        else:
            time.sleep(self.random.random() * WORK_S)
        if lease.fate == "renew" and "extend" in self.hello.capabilities:
            sent = time.monotonic()
            if self.ask("extend", **held, visibility_ms=LEASE_MS) == Ok(1):
                lease.until = sent + (LEASE_MS - SLACK_MS) / 1000
        lease.until = min(lease.until, time.monotonic())
        if lease.fate.endswith("nack") or lease.fate == "park":
            lease.settled = self.ask("nack", **held, delay_ms=5 if lease.fate == "park" else 0)
            return
        lease.settled = self.ask("ack", **held)
        if lease.settled == Ok(1):
            lease.acked = True
            self.history.acks.append(time.monotonic())

    def ask(self, op: str, **args: Value) -> Reply:
        """The port's reply. A port that takes its time from outside is told the server's."""
        if op != "publish" and "server-clock" not in self.hello.capabilities:
            args["now_ms"] = server_ms(self.port.client)
        reply = self.port.ask(Operation(op, 0, {"prefix": PREFIX, **args}))
        if not isinstance(reply, Ok):
            raise NoAnswer(reply, "\n".join([f"{op}: {write_reply(reply)}", self.port.adapter.stderr_tail()]).strip())
        return reply


def _held_at_once(leases: list[Lease]) -> tuple[str, list[Lease]]:
    for at, (one, two) in enumerate(pairwise(leases)):
        if two.since < one.until:
            return f"the workers {one.worker} and {two.worker} held it at once", _around(leases, at)
    return "", []


def _acked_late(leases: list[Lease]) -> tuple[str, list[Lease]]:
    for at, lease in enumerate(leases):
        if lease.fate == "late ack" and lease.acked:
            what = f"worker {lease.worker} acked {quoted(lease.payload)} when its lease had ended"
            return what, _around(leases, at)
    return "", []


def _acked_otherwise(leases: list[Lease]) -> tuple[str, list[Lease]]:
    acked = [lease for lease in leases if lease.acked]
    for at, lease in enumerate(acked):
        due = b"%d" % at
        if lease.payload != due:
            again = any(lease.payload == before.payload for before in acked[:at])
            what = f"was acked {'twice' if again else f'before {quoted(due)}'}"
            return f"the message {quoted(lease.payload)} {what}", _around(acked, at)
    if len(acked) < MESSAGES:
        first = quoted(b"%d" % len(acked))
        return f"{MESSAGES - len(acked)} messages were never acked, the first is {first}", leases[-SHOWN:]
    return "", []


# Of one group's leases in their order: what must not be there, if anything, and the leases that show it.
JUDGES = (_held_at_once, _acked_late, _acked_otherwise)


def _around(leases: list[Lease], at: int) -> list[Lease]:
    return leases[max(0, at - SHOWN // 2) : at + SHOWN // 2]


def _line(lease: Lease, start: float) -> str:
    """A lease as a line of the timeline, in milliseconds of real time."""
    since, until = ((at - start) * 1000 for at in (lease.since, lease.until))
    did = f"{lease.fate} -> {write_reply(lease.settled)}"
    return f"{since:9.1f} to {until:9.1f}  worker {lease.worker} has {quoted(lease.payload)}, {did}"
