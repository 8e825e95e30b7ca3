"""nack: gives a lease back: its message is retried first, at once or after a delay."""

from __future__ import annotations

from collections.abc import Sequence

from model import arguments
from model.operation import Ok, Reply
from model.settle import fence, tier_of
from model.state import PARKED, State


def nack(state: State, argv: Sequence[bytes]) -> tuple[State, Reply]:
    """``redisq/lua/nack.lua``. ARGV: prefix, group, token, now, delay; replies 1, or 0 without a lease."""
    if bad := arguments.check("nack", argv):
        return state, bad
    _, group, token, now, delay = argv

    if refused := fence(state, group, token):
        return state, refused
    tier, delay_ms = tier_of(state, group), int(delay)
    due_ms = arguments.clock(now, state.now_ms) + delay_ms if delay_ms else 0
    state = state.del_lock(group)
    state = state.zadd(tier, due_ms, group)
    state = state.hset(group, tier)
    if delay_ms:
        # Not the token: whoever settled it holds the group no more.
        state = state.set_lock(group, PARKED, delay_ms)
    return state, Ok(1)
