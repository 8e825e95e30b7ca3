"""What must hold, whatever the scripts do: written from the design, not from their steps.

``of_state`` looks at one state; ``Ledger`` follows a whole history and holds what no single state shows:
first in first out, one delivery at a time, nothing lost, nothing doubled, only the holder settles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from model.operation import Delivery, Ok, Operation, Reply
from model.state import PARKED, State


def of_state(state: State) -> list[str]:
    """Every violation in a state that scripts alone have reached; empty when all invariants hold."""
    return list(_of_state(state.expired()))


def _of_state(state: State) -> Iterator[str]:
    tiers: dict[bytes, list[int]] = defaultdict(list)
    for tier, entries in enumerate(state.ready):
        for group in entries:
            tiers[group].append(tier)
    for group, messages in state.queues.items():
        if not messages:
            yield f"INV-LIST {group!r}: a queue is a list and never empty"
        if group not in tiers:
            yield f"INV-INDEX {group!r}: has messages and no entry, so no claim can reach them"
        if state.tier_of(group) is None:
            yield f"INV-PRIO {group!r}: has messages and no valid prio field"
    for group, found in tiers.items():
        if group not in state.queues:
            yield f"INV-STALE {group!r}: has an entry and no messages"
        if len(found) > 1:
            yield f"INV-TIER {group!r}: has an entry in tiers {found}"
        elif state.tier_of(group) not in (None, found[0]):
            yield f"INV-TIER {group!r}: has its entry in tier {found[0]}, its prio field says {state.tier_of(group)}"
    for group in state.prio:
        if group not in state.queues:
            yield f"INV-DRAIN {group!r}: is drained and still has a prio field"
    for group, lock in state.locks.items():
        if lock.deadline_ms is None:
            yield f"INV-TTL {group!r}: its lock would never end"
        if group not in state.queues:
            yield f"INV-DRAIN {group!r}: is drained and still has a lock"
    if state.strays:
        yield f"INV-KEYS keys that are none of the queue's: {state.strays}"


@dataclass
class Ledger:
    """The history of one prefix as its users saw it: what was accepted, delivered and settled.

    ``record`` takes each operation with its reply and returns what it violates. It trusts no state of the queue:
    only replies, and the server's clock for the end of each lease.
    """

    stored: dict[bytes, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    leases: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)  # group → token, last ms of the lease
    parked: dict[bytes, int] = field(default_factory=dict)  # group → last ms of the park
    published: int = 0
    acked: int = 0

    def record(self, operation: Operation, reply: Reply) -> list[str]:
        """What this reply violates. Foreign writes are none of the ledger's business: stop using it after one."""
        return list(self._record(operation, operation.to_argv(), reply)) if operation.is_script else []

    def _record(self, operation: Operation, argv: Sequence[bytes], reply: Reply) -> Iterator[str]:
        now_ms = operation.time_ms
        match operation.op, reply:
            case "publish", Ok(int(length)):
                group = argv[1]
                self.stored[group].append(argv[2])
                self.published += 1
                if length != len(self.stored[group]):
                    yield f"INV-LOST {group!r}: {len(self.stored[group])} messages are stored, publish says {length}"
            case "claim", Ok(Delivery(group, payload)):
                token, end_ms = self.leases.get(group, (b"", -1))
                if now_ms <= end_ms:
                    yield f"INV-EXCLUSIVE {group!r}: claimed while {token!r} holds it until {end_ms}"
                if now_ms <= self.parked.get(group, -1):
                    yield f"INV-PARKED {group!r}: claimed while parked until {self.parked[group]}"
                if self.stored[group][:1] != [payload]:
                    yield f"INV-FIFO {group!r}: delivered {payload!r}, the oldest is {self.stored[group][:1]}"
                self.parked.pop(group, None)
                self.leases[group] = (argv[3], now_ms + int(argv[2]))
            case (("ack" | "nack" | "extend"), Ok(settled)):
                group, token = argv[1], argv[2]
                holder, end_ms = self.leases.get(group, (b"", -1))
                holds = holder == token and now_ms <= end_ms
                if bool(settled) != holds:
                    yield f"INV-FENCE {group!r}: {operation.op} by {token!r} answers {settled}, it holds: {holds}"
                if settled and holds:
                    self._settle(operation.op, group, argv, now_ms)

    def _settle(self, op: str, group: bytes, argv: Sequence[bytes], now_ms: int) -> None:
        if op == "extend":
            self.leases[group] = (argv[2], now_ms + int(argv[4]))
            return
        del self.leases[group]
        if op == "ack":
            self.stored[group].pop(0)
            self.acked += 1
        elif int(argv[4]):
            self.parked[group] = now_ms + int(argv[4])

    def against(self, state: State) -> list[str]:
        """What the stored messages of the state say otherwise than this history."""
        groups = {group for group, messages in self.stored.items() if messages} | state.queues.keys()
        return [
            f"INV-LOST {group!r}: stored {state.messages(group)}, published and not acked {self.stored[group]}"
            for group in sorted(groups)
            if list(state.messages(group) or ()) != self.stored[group]
        ]


def parked_groups(state: State) -> list[bytes]:
    """The groups that are parked now."""
    return [group for group in state.locks if (lock := state.lock(group)) is not None and lock.value == PARKED]
