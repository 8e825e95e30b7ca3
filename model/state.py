"""The state of one prefix, as Redis holds it, and the few commands the scripts use on it.

Every method that changes something returns a new state; the old one stays as it was. Time is ``now_ms``, the server's
clock. A lock is gone if and only if ``now_ms > deadline_ms`` (Redis keeps a key through the millisecond of its
deadline); an expired lock stays in ``locks`` until something removes it, as on a server, and no read shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from model.operation import Json, tagged

TIERS = 5
PARKED = b"parked"

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock key: its value (None: a key of another type) and its deadline in epoch-ms (None: no TTL)."""

    value: bytes | None
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class State:
    """All keys of one prefix at one instant of the server's clock.

    ``queues``: group → its messages, oldest first, never empty; None stands for a key of another type.
    ``locks``: group → lock. ``ready``: for each tier 0..4, group → score in epoch-ms.
    ``prio``: group → the field's bytes. ``strays``: keys under the prefix that are none of these; always empty here,
    filled by whoever reads a real server.
    """

    now_ms: int = 0
    queues: Mapping[bytes, tuple[bytes, ...] | None] = field(default_factory=dict)
    locks: Mapping[bytes, Lock] = field(default_factory=dict)
    ready: tuple[Mapping[bytes, int], ...] = ({},) * TIERS
    prio: Mapping[bytes, bytes] = field(default_factory=dict)
    strays: tuple[bytes, ...] = ()

    # Time

    def at(self, now_ms: int) -> State:
        """The same keys at another instant."""
        return replace(self, now_ms=now_ms)

    def expired(self) -> State:
        """With every lock removed that is past its deadline, as reading each of them does on a server."""
        return replace(self, locks={group: lock for group, lock in self.locks.items() if self._lives(lock)})

    def _lives(self, lock: Lock) -> bool:
        return lock.deadline_ms is None or self.now_ms <= lock.deadline_ms

    # Reads

    def messages(self, group: bytes) -> tuple[bytes, ...] | None:
        """The group's messages, oldest first; empty when the list is absent, None for a key of another type."""
        return self.queues.get(group, ())

    def lock(self, group: bytes) -> Lock | None:
        """The group's lock, or None when there is none or its deadline is past."""
        lock = self.locks.get(group)
        return lock if lock is not None and self._lives(lock) else None

    def tier_of(self, group: bytes) -> int | None:
        """The tier in the group's ``prio`` field; None when it is missing or not exactly 0..4."""
        value = self.prio.get(group, b"")
        return int(value) if value in (b"0", b"1", b"2", b"3", b"4") else None

    def tier_that_knows(self, group: bytes) -> int | None:
        """The lowest tier with an entry of the group, or None."""
        return next((tier for tier in range(TIERS) if group in self.ready[tier]), None)

    def window(self, tier: int, limit_ms: int, *, below: bool, skip: int, count: int) -> list[tuple[int, bytes]]:
        """Entries of one tier as (score, group), ordered by score and then by the bytes of the group.

        Those with a score up to ``limit_ms``, or only below it; ``count`` of them after the first ``skip``.
        """
        due = sorted(
            (score, group)
            for group, score in self.ready[tier].items()
            if (score < limit_ms if below else score <= limit_ms)
        )
        return due[skip : skip + count]

    def to_json(self) -> Json:
        """What a reader of the server would see, as JSON: byte strings tagged, lists sorted, no expired lock."""
        seen = self.expired()
        return {
            "now_ms": seen.now_ms,
            "queues": [
                {"group": tagged(group), "messages": None if messages is None else [tagged(m) for m in messages]}
                for group, messages in sorted(seen.queues.items())
            ],
            "locks": [
                {
                    "group": tagged(group),
                    "value": None if lock.value is None else tagged(lock.value),
                    "deadline_ms": lock.deadline_ms,
                }
                for group, lock in sorted(seen.locks.items())
            ],
            "ready": [
                [
                    {"group": tagged(group), "score_ms": score}
                    for score, group in sorted((s, g) for g, s in tier.items())
                ]
                for tier in seen.ready
            ],
            "prio": [{"group": tagged(group), "value": tagged(value)} for group, value in sorted(seen.prio.items())],
        }

    # Writes

    def rpush(self, group: bytes, payload: bytes) -> State:
        """With one more message at the tail."""
        return replace(self, queues=_with(self.queues, group, (*(self.messages(group) or ()), payload)))

    def lpop(self, group: bytes) -> State:
        """Without the oldest message; an emptied list is gone."""
        left = (self.messages(group) or ())[1:]
        return replace(self, queues=_with(self.queues, group, left) if left else _without(self.queues, group))

    def zadd(self, tier: int, score_ms: int, group: bytes) -> State:
        """With the group's entry in the tier at that score."""
        return self._tier(tier, _with(self.ready[tier], group, score_ms))

    def zadd_nx(self, tier: int, score_ms: int, group: bytes) -> State:
        """The same, unless the tier has an entry of the group."""
        return self if group in self.ready[tier] else self.zadd(tier, score_ms, group)

    def zrem(self, tier: int, group: bytes) -> State:
        """Without the group's entry in the tier."""
        return self._tier(tier, _without(self.ready[tier], group))

    def hset(self, group: bytes, tier: int) -> State:
        """With the group's ``prio`` field."""
        return replace(self, prio=_with(self.prio, group, b"%d" % tier))

    def hdel(self, group: bytes) -> State:
        """Without the group's ``prio`` field."""
        return replace(self, prio=_without(self.prio, group))

    def set_lock(self, group: bytes, value: bytes, px_ms: int) -> State:
        """With the group's lock, of that value, for that long."""
        return replace(self, locks=_with(self.locks, group, Lock(value, self.now_ms + px_ms)))

    def del_lock(self, group: bytes) -> State:
        """Without the group's lock."""
        return replace(self, locks=_without(self.locks, group))

    def _tier(self, tier: int, entries: Mapping[bytes, int]) -> State:
        return replace(self, ready=(*self.ready[:tier], entries, *self.ready[tier + 1 :]))


def _with(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    return {**mapping, key: value}


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    return {k: v for k, v in mapping.items() if k != key}
