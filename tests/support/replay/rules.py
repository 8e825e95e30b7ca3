"""The steps that no client may take, whatever commands it takes them by.

Who holds a lease is told by its token. A script shows it among its arguments; a command shows it by having set the lock
on the same connection, or by having read it there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from model import invariants
from model.notation import quoted
from model.state import PARKED, State
from tests.support.replay.commands import Held, alive
from tests.support.replay.keys import Change, Keys
from tests.support.replay.monitor import Entry
from tests.support.replay.units import Span, Unit

CONNECTIONS = 10_000
"""Of how many connections it is remembered what they read."""


@dataclass(slots=True)
class Connection:
    """What is known of a client's connection."""

    read: dict[bytes, bytes] = field(default_factory=dict)
    """Of each group the token it has last read."""
    in_transaction: bool = False
    touched: set[bytes] = field(default_factory=set)
    """The groups that its transaction has changed."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may still pop the head of a group whose lock is gone: whoever released it."""

    source: str
    token: bytes
    popped: bool = False


class Rules:
    """Judges each change by who made it."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._connections: OrderedDict[str, Connection] = OrderedDict()
        self._released: dict[bytes, Lease] = {}

    def of(self, source: str) -> Connection:
        """The connection of that address."""
        connection = self._connections.setdefault(source, Connection())
        self._connections.move_to_end(source)
        if len(self._connections) > CONNECTIONS:
            self._connections.popitem(last=False)
        return connection

    def note(self, entry: Entry) -> None:
        """Remembers what a command that is no script's tells of its connection."""
        connection = self.of(entry.source)
        match entry.name, entry.words[1:]:
            case b"MULTI", _:
                connection.in_transaction = True
            case ((b"EXEC" | b"DISCARD" | b"RESET"), _):
                connection.in_transaction = False
            case ((b"GET" | b"GETEX" | b"GETDEL"), (key, *_)):
                place = self._keys.family(key)
                if place is not None and place[0] == "lock":
                    lock = self._keys.of(place[1]).locks.get(place[1])
                    connection.read[place[1]] = lock.value or b"" if lock is not None else b""

    def judge(self, change: Change, unit: Unit, when: Span) -> Iterator[str]:
        """What the change violates."""
        group = change.group
        match change.kind:
            case "lock":
                yield from self._lock(change, unit, when)
            case "pop":
                yield from self._pop(change, unit, when)
            case "list":
                yield f"LIST {_place('q', group)}: {_list(change)}: messages join at the tail and leave at the head"
            case "ttl":
                yield f"TTL {quoted(group)}: a key that holds messages or the index was given an end"
        if not unit.is_script and not self.of(unit.first.source).in_transaction:
            yield from self.whole(group, change.after)

    def whole(self, group: bytes, state: State) -> Iterator[str]:
        """What no moment between two commands may show."""
        tiers = [tier for tier, entries in enumerate(state.ready) if group in entries]
        if len(tiers) > 1:
            yield f"TIERS {quoted(group)}: has an entry in tiers {', '.join(map(str, tiers))}"
        if state.messages(group) and not tiers:
            yield f"INDEX {quoted(group)}: has messages and no entry, so no claim can reach them"

    def at_end(self, group: bytes, when: Span) -> Iterator[str]:
        """What no script or transaction may leave."""
        yield from invariants.of_state(self._keys.of(group).at(when.last_ms))

    def _holds(self, unit: Unit, group: bytes, lock: Held) -> bool:
        if lock.value in unit.first.words:
            return True
        source = unit.first.source
        return not unit.is_script and (lock.source == source or self.of(source).read.get(group) == lock.value)

    def _lock(self, change: Change, unit: Unit, when: Span) -> Iterator[str]:
        group = change.group
        before, after = change.before.locks.get(group), change.after.locks.get(group)
        there = alive(change.before, group, when)
        held = isinstance(before, Held) and before.deadline_ms is not None and self._holds(unit, group, before)
        if isinstance(before, Held) and there and not held and before.deadline_ms is not None:
            where, holder = _place("lock", group), quoted(before.value or b"")
            until = f"which holds it until {before.deadline_ms}"
            if after is None:
                yield f"DEL {where}: deleted by one that does not show the token {holder}, {until}"
            elif after.value != before.value:
                yield f"LOCK {where}: {quoted(after.value or b'')} replaces {holder}, {until}"
            else:
                yield f"EXTEND {where}: its end was moved by one that does not show the token {holder}, {until}"
        if after is not None and after.deadline_ms is None and (before is None or before.deadline_ms is not None):
            yield f"TTL {_place('lock', group)}: a lock without an end: whoever dies with it blocks its group for good"
        if held and there is not False and (after is None or after.value == PARKED):
            popped = group in self._released and self._released[group].popped
            assert before is not None
            self._released[group] = Lease(unit.first.source, before.value or b"", popped)
        elif after is not None and (before is None or after.value != before.value):
            self._released.pop(group, None)

    def _pop(self, change: Change, unit: Unit, when: Span) -> Iterator[str]:
        group, lease = change.group, self._released.get(change.group)
        lock = change.before.locks.get(group)
        there = alive(change.before, group, when)
        if isinstance(lock, Held) and there is not False and self._holds(unit, group, lock):
            lease = Lease(unit.first.source, lock.value or b"", lease is not None and lease.popped)
        elif there or lease is None or lease.source != unit.first.source:
            who = f"while {quoted(lock.value or b'')} holds it" if lock is not None and there else "without a lease"
            yield f"POP {_place('q', group)}: its head was removed {who}"
            return
        if lease.popped:
            yield f"POP {_place('q', group)}: a second message was removed by the one lease {quoted(lease.token)}"
        self._released[group] = Lease(lease.source, lease.token, True)


def _place(family: str, group: bytes) -> str:
    return f"{family}:{quoted(group)[1:-1]}"


def _list(change: Change) -> str:
    before, after = (state.messages(change.group) for state in (change.before, change.after))
    if after is None:
        return "replaced by a key of another type"
    return f"{len(before or ())} messages became {len(after)} otherwise than by a push or the pop of one"
