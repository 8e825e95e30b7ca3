"""claim: leases the free due group of the lowest score and returns its oldest message."""

from __future__ import annotations

from collections.abc import Sequence

from model import arguments
from model.operation import Delivery, Ok, Reply
from model.state import TIERS, State

FURTHER_PAGES = 16


def look(state: State, tier: int, group: bytes) -> tuple[State, bytes | None, int | None]:
    """Looks at one entry: the payload if it can be served; else the lock's TTL in ms if it is locked.

    Neither: the entry was stale or broken, and is gone from the state returned.
    """
    lock = state.lock(group)
    if lock is not None and lock.deadline_ms is not None:
        return state, None, lock.deadline_ms - state.now_ms
    # No lock, or one without a TTL on a due group: its lease is over by its score.
    messages = state.messages(group)
    if messages:
        return state, messages[0], None
    return state.hdel(group).zrem(tier, group), None, None


def claim(state: State, argv: Sequence[bytes]) -> tuple[State, Reply]:
    """``redisq/lua/claim.lua``. ARGV: prefix, now, px, token, K, min_priority; replies nil or a delivery."""
    if bad := arguments.check("claim", argv):
        return state, bad
    _, now, px, token, k, min_priority = argv
    now_ms, px_ms, page_size = arguments.clock(now, state.now_ms), int(px), int(k)
    servers_clock = now == b""

    best: tuple[bytes, bytes, int] | None = None  # group, payload, tier
    bound, below, further_pages = now_ms, False, FURTHER_PAGES
    for tier in range(arguments.tier(min_priority), TIERS):
        head = state.window(tier, bound, below=below, skip=0, count=1)
        if not head:
            continue
        score, group = head[0]
        state, payload, ttl_ms = look(state, tier, group)
        stepped_over, more = (0 if ttl_ms is None else 1), payload is None
        while more:
            page = state.window(tier, bound, below=below, skip=stepped_over, count=page_size)
            locked: list[tuple[bytes, int]] = []
            for entry in page:
                score, group = entry
                state, payload, ttl_ms = look(state, tier, group)
                if payload is not None:
                    break
                if ttl_ms is not None:
                    locked.append((group, now_ms + ttl_ms + 1))
            more = payload is None and len(page) == page_size
            if more:
                # A full page with nothing to serve: a client's clock must not move other clients' deadlines.
                if servers_clock:
                    for blocked, free_ms in locked:
                        state = state.zadd(tier, free_ms, blocked)
                else:
                    stepped_over += len(locked)
                further_pages -= 1
                more = further_pages >= 0
        if payload is not None:
            best, bound, below = (group, payload, tier), score, True
    if best is None:
        return state, Ok(None)
    group, payload, tier = best
    state = state.set_lock(group, token, px_ms)
    state = state.zadd(tier, now_ms + px_ms, group)
    return state, Ok(Delivery(group, payload))
