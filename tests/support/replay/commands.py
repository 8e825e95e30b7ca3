"""What the commands of Redis do to the keys of one group: pure functions on the model's state.

Each answers the kind of change (``Change.kind`` in ``keys``) and the state after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from model.state import Lock, State
from tests.support.replay.units import Span

Words = Sequence[bytes]
Effect = tuple[str, State]
UNITS_MS = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
ZADD_OPTIONS = frozenset((b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR"))


@dataclass(frozen=True, slots=True)
class Held(Lock):
    """A lock, and what is known of it: the first ms that may be its last, and the connection that set it."""

    earliest_ms: int | None = None
    source: str = ""


def alive(state: State, group: bytes, when: Span) -> bool | None:
    """Whether the group has a lock at that time; None in the milliseconds where that cannot be told."""
    lock = state.locks.get(group)
    if lock is None:
        return False
    if lock.deadline_ms is None:
        return True
    earliest_ms = lock.earliest_ms if isinstance(lock, Held) and lock.earliest_ms is not None else lock.deadline_ms
    if when.last_ms <= earliest_ms:
        return True
    return False if when.first_ms > lock.deadline_ms else None


def on_list(state: State, group: bytes, words: Words) -> Effect | None:
    """A command on the list; None if it is not known here."""
    name, messages = words[0].upper(), state.messages(group)
    if name == b"SET":
        return "list", replace(state, queues={group: None})
    if messages is None and name in _LIST_COMMANDS:
        return "list", state  # it was refused
    assert messages is not None or name not in _LIST_COMMANDS
    held = list(messages or ())
    match name, list(words[2:]):
        case (b"RPUSH", added) | (b"RPUSHX", added):
            held += added if held or name == b"RPUSH" else []
            return "push", _with_list(state, group, held)
        case (b"LPUSH", added) | (b"LPUSHX", added):
            held = [*reversed(added), *held] if held or name == b"LPUSH" else held
            return "list" if messages else "push", _with_list(state, group, held)
        case b"LPOP", []:
            return "pop", _with_list(state, group, held[1:])
        case b"LPOP", [count]:
            return "pop" if int(count) == 1 else "list", _with_list(state, group, held[int(count) :])
        case b"RPOP", []:
            return "list" if len(held) > 1 else "pop", _with_list(state, group, held[:-1])
        case b"LTRIM", [b"1", b"-1"]:
            return "pop", _with_list(state, group, held[1:])
        case b"LREM", [count, value] if int(count) == 1 and held[:1] == [value]:
            return "pop", _with_list(state, group, held[1:])
        case b"LREM", [_, value] if value not in held:
            return "list", state
    return None


_LIST_COMMANDS = frozenset((b"RPUSH", b"RPUSHX", b"LPUSH", b"LPUSHX", b"LPOP", b"RPOP", b"LTRIM", b"LREM"))


def _with_list(state: State, group: bytes, messages: Sequence[bytes]) -> State:
    return replace(state, queues={group: tuple(messages)} if messages else {})


def on_lock(state: State, group: bytes, words: Words, when: Span, source: str) -> Effect | None:
    """A command on the lock; None if it is not known here."""
    name, rest = words[0].upper(), list(words[2:])
    there = alive(state, group, when)
    if there is False:
        state = replace(state, locks={})
    lock = state.locks.get(group)

    def ends(unit: bytes, amount: bytes) -> Lock:
        ms = int(amount) * UNITS_MS[unit]
        first, last = (0, 0) if unit.endswith(b"AT") else (when.first_ms, when.last_ms)
        return Held(None, last + ms, first + ms, source)

    match name, rest:
        case b"SET", [value, *options]:
            return _set(state, group, value, options, ends, there, source)
        case (b"SETEX", [amount, value]) | (b"PSETEX", [amount, value]):
            unit = b"EX" if name == b"SETEX" else b"PX"
            return _set(state, group, value, [unit, amount], ends, there, source)
        case b"SETNX", [value]:
            return _set(state, group, value, [b"NX"], ends, there, source)
        case b"GETSET", [value]:
            return _set(state, group, value, [], ends, there, source)
        case b"GETDEL", []:
            return "lock", replace(state, locks={})
        case b"GETEX", []:
            return "lock", state
        case (b"PERSIST", []) | (b"GETEX", [b"PERSIST"]):
            return "lock", _with_lock(state, group, lock and Held(lock.value, None, None, source))
        case b"GETEX", [unit, amount] if unit.upper() in UNITS_MS:
            return "lock", _moved(state, group, lock, ends(unit.upper(), amount))
        case ((b"EXPIRE" | b"PEXPIRE" | b"EXPIREAT" | b"PEXPIREAT"), [amount]):
            unit = (b"PX" if name.startswith(b"P") else b"EX") + (b"AT" if name.endswith(b"AT") else b"")
            return "lock", _moved(state, group, lock, ends(unit, amount))
        case ((b"RPUSH" | b"LPUSH" | b"SADD" | b"HSET" | b"ZADD"), _):  # of another type
            return "lock", _with_lock(state, group, lock or Held(None, None, None, source))
    return None


def _set(
    state: State, group: bytes, value: bytes, options: Words, ends: object, there: bool | None, source: str
) -> Effect | None:
    lock: Lock = Held(value, None, None, source)
    rest = [option.upper() for option in options]
    while rest:
        match rest:
            case [(b"NX" | b"XX") as condition, *more]:
                if there is None:
                    return "unsure", replace(state, locks={})
                if there is (condition == b"NX"):
                    return "lock", state
            case [b"GET", *more]:
                pass
            case [b"KEEPTTL", *more]:
                old = state.locks.get(group)
                lock = Held(value, *_deadline(old), source) if old is not None else lock
            case [unit, amount, *more] if unit in UNITS_MS and callable(ends):
                lock = replace(ends(unit, amount), value=value)
            case _:
                return None
        rest = more
    return "lock", _with_lock(state, group, lock)


def _deadline(lock: Lock) -> tuple[int | None, int | None]:
    return lock.deadline_ms, lock.earliest_ms if isinstance(lock, Held) else lock.deadline_ms


def _moved(state: State, group: bytes, lock: Lock | None, end: Lock) -> State:
    return _with_lock(state, group, lock and replace(end, value=lock.value))


def _with_lock(state: State, group: bytes, lock: Lock | None) -> State:
    return replace(state, locks={} if lock is None else {group: lock})


def on_ready(states: dict[bytes, State], tier: int, words: Words) -> Iterator[tuple[bytes, State]] | None:
    """A command on a tier, as the groups that it changes, each with its state; None if it is not known here."""
    name, rest = words[0].upper(), list(words[2:])
    if name == b"ZREM":
        return ((group, states.get(group, State()).zrem(tier, group)) for group in rest)
    if name == b"ZINCRBY" and len(rest) == 2:
        name, rest = b"ZADD", [b"INCR", *rest]
    if name != b"ZADD":
        return None
    options = set()
    while rest and rest[0].upper() in ZADD_OPTIONS:
        options.add(rest.pop(0).upper())
    return _added(states, tier, options, rest)


def _added(states: dict[bytes, State], tier: int, options: set[bytes], rest: Words) -> Iterator[tuple[bytes, State]]:
    for text, group in zip(rest[::2], rest[1::2], strict=True):
        state = states.get(group, State())
        old = state.ready[tier].get(group)
        score = score_ms(text) + (old or 0 if b"INCR" in options else 0)
        skipped = (b"NX" in options and old is not None) or (b"XX" in options and old is None)
        if old is not None:
            skipped |= (b"GT" in options and score <= old) or (b"LT" in options and score >= old)
        if not skipped:
            yield group, state.zadd(tier, score, group)


def score_ms(text: bytes) -> int:
    """A score; one that is no whole number stays as it is, to be seen."""
    number = float(text)
    return int(number) if number.is_integer() else number  # type: ignore[return-value]


def on_prio(states: dict[bytes, State], words: Words) -> Iterator[tuple[bytes, State]] | None:
    """A command on the hash of priorities, as the groups that it changes; None if it is not known here."""
    name, rest = words[0].upper(), list(words[2:])
    if name == b"HDEL":
        return ((group, states.get(group, State()).hdel(group)) for group in rest)
    if name not in (b"HSET", b"HMSET", b"HSETNX"):
        return None
    pairs = zip(rest[::2], rest[1::2], strict=True)
    return (
        (group, replace(states.get(group, State()), prio={group: value}))
        for group, value in pairs
        if name != b"HSETNX" or group not in states.get(group, State()).prio
    )
