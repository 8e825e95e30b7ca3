"""audit: looks at everything of one group, and heals what is wrong: ``redisq/ops/audit.lua``."""

from __future__ import annotations

from dataclasses import replace

from model.state import TIERS, State

TEN_YEARS_MS = 315_360_000_000

Found = list[tuple[str, str]]
"""Findings, each with a detail."""


def audit(state: State, prefix: bytes, group: bytes, tolerance_ms: int, *, repair: bool) -> tuple[State, Found]:
    """What is wrong with a group, and the state after; the same state unless ``repair``."""
    found: Found = []
    messages, lock = state.messages(group), state.lock(group)
    if messages is None:
        found.append(("list-type", "string"))
    if lock is not None and lock.value is None:
        found.append(("lock-type", "list"))
    end_ms = lock.deadline_ms if lock is not None and lock.value is not None else None
    endless = lock is not None and lock.value is not None and end_ms is None
    known = state.tier_of(group)
    entries = [tier for tier in range(TIERS) if group in state.ready[tier]]
    tiers = "".join(map(str, entries))
    lowest = state.tier_that_knows(group)
    tier = known if known is not None else lowest if lowest is not None else 0
    # Of several entries the one where the field says counts; else that of the lowest tier.
    score = state.ready[tier if tier in entries else entries[0]][group] if entries else None
    free_ms, ahead = state.now_ms if end_ms is None else end_ms, False
    if not messages:
        if entries and messages is not None:
            found.append(("stale-entry", tiers))
        elif not entries and group in state.prio:
            found.append(("lone-field", state.prio[group].decode("latin-1")))
    else:
        if not entries:
            found.append(("no-entry", str(len(messages))))
        elif len(entries) > 1:
            found.append(("two-tiers", tiers))
        elif entries != [tier]:
            found.append(("wrong-tier", tiers))
        if known is None:
            found.append(("no-field", state.prio.get(group, b"").decode("latin-1")))
        due_ms = score or 0
        if endless and state.now_ms < due_ms <= state.now_ms + TEN_YEARS_MS:
            free_ms = due_ms  # its lease lasts as long as the score says
        ahead = due_ms > free_ms + 1 + tolerance_ms  # a claim re-scores to the millisecond after the lock
        if ahead:
            found.append(("score-ahead", str(due_ms - free_ms)))
    if endless:
        found.append(("lock-without-ttl", ""))
    if not repair or not found:
        return state, found

    if messages is None:
        state = _aside(state, prefix, group, "q")
    if lock is not None and lock.value is None:
        state = _aside(state, prefix, group, "lock")
    if messages:
        state = state.zadd(tier, free_ms if ahead or score is None else score, group).hset(group, tier)
    else:
        state = state.hdel(group)
    for other in range(TIERS):
        if not messages or other != tier:
            state = state.zrem(other, group)
    if endless and lock is not None:
        left_ms = free_ms - state.now_ms if messages else 0
        state = state.del_lock(group)
        if left_ms > 0:
            state = replace(state, locks={**state.locks, group: replace(lock, deadline_ms=free_ms)})
    return state, found


def _aside(state: State, prefix: bytes, group: bytes, family: str) -> State:
    """With the key of a wrong type under another name, where it is in nobody's way."""
    queues, locks = dict(state.queues), dict(state.locks)
    (queues if family == "q" else locks).pop(group)
    name = prefix + f":aside:{state.now_ms}:{family}:".encode() + group
    return replace(state, queues=queues, locks=locks, strays=tuple(sorted((*state.strays, name))))
