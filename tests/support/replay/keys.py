"""The key space as the commands leave it: a state of the model for each group.

A lock's deadline is known as well as the clock of the command that set it: from ``earliest_ms`` to ``deadline_ms``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from model.state import TIERS, Lock, State
from tests.support.replay.commands import on_list, on_lock, on_prio, on_ready
from tests.support.replay.units import Span

Words = tuple[bytes, ...]
EMPTY = State()
READS = frozenset(
    b"GET GETRANGE SUBSTR STRLEN MGET EXISTS TYPE TTL PTTL EXPIRETIME PEXPIRETIME DUMP OBJECT TOUCH LLEN LRANGE LINDEX "
    b"LPOS HGET HMGET HGETALL HEXISTS HKEYS HVALS HLEN HSCAN HSTRLEN HRANDFIELD ZSCORE ZMSCORE ZCARD ZCOUNT ZRANGE "
    b"ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZRANGEBYLEX ZLEXCOUNT ZRANK ZREVRANK ZSCAN ZRANDMEMBER SCAN KEYS WATCH "
    b"MEMORY DEBUG SORT_RO ECHO PUBLISH SPUBLISH CLIENT COMMAND INFO "
    b"EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO".split()
)
"""Commands that change no key by themselves: a script's own commands follow it."""


@dataclass(frozen=True, slots=True)
class Change:
    """What one command did to one group."""

    kind: str
    """``push`` and ``pop`` at the right ends of the list, ``list`` for anything else there; ``lock``, ``entry``,
    ``prio``; ``ttl`` on a key that has none; ``unsure``: the lock was or was not taken in the millisecond of its
    deadline; ``unknown``: what it did cannot be told from the line."""
    group: bytes
    before: State
    after: State


class Keys:
    """All keys of one prefix."""

    def __init__(self, prefix: bytes) -> None:
        self._key = re.compile(re.escape(prefix) + rb":(?:(q|lock):(.+)|(ready):([0-4])|(prio))\Z", re.DOTALL)
        self.groups: dict[bytes, State] = {}

    def of(self, group: bytes) -> State:
        """The keys of a group."""
        return self.groups.get(group, EMPTY)

    def put(self, group: bytes, state: State) -> None:
        """Sets the keys of a group."""
        if state.queues or state.locks or state.prio or any(state.ready):
            self.groups[group] = state
        else:
            self.groups.pop(group, None)

    def whole(self) -> State:
        """All groups in one state."""
        return merged(self.groups.values())

    def family(self, key: bytes) -> tuple[str, bytes] | None:
        """What a key is, with its group or tier; None when it is none of the key space."""
        found = self._key.match(key)
        if found is None:
            return None
        return (found[1] or found[3] or found[5]).decode(), found[2] or found[4] or b""

    def named(self, words: Words) -> set[bytes]:
        """The groups that a command names."""
        groups: set[bytes] = set()
        for at, word in enumerate(words[1:], 1):
            match self.family(word):
                case (("q" | "lock"), group):
                    groups.add(group)
                case (("ready" | "prio"), _):
                    groups |= set(words[at + 1 :])
        return groups

    def apply(self, words: Words, when: Span, source: str) -> Iterator[Change]:
        """What a command does, a change of a group at a time; each is in effect once it is yielded."""
        name = words[0].upper()
        if name in (b"FLUSHALL", b"FLUSHDB"):
            yield from self._each("list", [(group, EMPTY) for group in self.groups])
        elif name in READS or len(words) < 2:
            return
        elif name in (b"DEL", b"UNLINK"):
            for key in words[1:]:
                yield from self._delete(key)
        elif (place := self.family(words[1])) is not None:
            yield from self._on(*place, words, when, source)
        elif any(self.family(word) for word in words[2:]):
            yield from self._unknown(words)

    def _on(self, family: str, name: bytes, words: Words, when: Span, source: str) -> Iterator[Change]:
        """A command on a key: of the group ``name``, or of the tier."""
        if family != "lock" and re.fullmatch(rb"P?EXPIRE(AT)?", words[0].upper()):
            for group in [name] if family == "q" else list(self.groups):
                yield Change("ttl", group, self.of(group), self.of(group))
            return
        if family in ("q", "lock"):
            before = self.of(name)
            effect = on_list(before, name, words) if family == "q" else on_lock(before, name, words, when, source)
            if effect is None:
                yield from self._unknown(words)
            elif effect[1] != before:
                self.put(name, effect[1])
                yield Change(effect[0], name, before, effect[1])
            return
        many = on_ready(self.groups, int(name), words) if family == "ready" else on_prio(self.groups, words)
        if many is None:
            yield from self._unknown(words)
        else:
            yield from self._each("entry" if family == "ready" else "prio", many)

    def _each(self, kind: str, states: Iterable[tuple[bytes, State]]) -> Iterator[Change]:
        for group, after in list(states):
            before = self.of(group)
            if after != before:
                self.put(group, after)
                yield Change(kind, group, before, after)

    def _delete(self, key: bytes) -> Iterator[Change]:
        match self.family(key):
            case "q", group:
                yield from self._each("list", [(group, replace(self.of(group), queues={}))])
            case "lock", group:
                yield from self._each("lock", [(group, replace(self.of(group), locks={}))])
            case "ready", tier:
                yield from self._each("entry", [(g, s.zrem(int(tier), g)) for g, s in self.groups.items()])
            case "prio", _:
                yield from self._each("prio", [(g, s.hdel(g)) for g, s in self.groups.items()])

    def _unknown(self, words: Words) -> Iterator[Change]:
        for group in self.named(words) or set(self.groups):
            yield Change("unknown", group, self.of(group), self.of(group))


def merged(states: Iterable[State]) -> State:
    """The states of several groups as one."""
    queues: dict[bytes, Any] = {}
    locks: dict[bytes, Lock] = {}
    prio: dict[bytes, bytes] = {}
    ready: tuple[dict[bytes, int], ...] = tuple({} for _ in range(TIERS))
    for state in states:
        queues.update(state.queues)
        locks.update(state.locks)
        prio.update(state.prio)
        for tier, entries in zip(ready, state.ready, strict=True):
            tier.update(entries)
    return State(0, queues, locks, ready, prio)


def of_group(state: State, group: bytes) -> State:
    """The keys of one group of a state."""

    def only(mapping: Any) -> Any:
        return {group: mapping[group]} if group in mapping else {}

    return State(0, only(state.queues), only(state.locks), tuple(map(only, state.ready)), only(state.prio))
