"""extend: renews a lease: it ends px from now."""

from __future__ import annotations

from collections.abc import Sequence

from model import arguments
from model.operation import Ok, Reply
from model.settle import fence, tier_of
from model.state import State


def extend(state: State, argv: Sequence[bytes]) -> tuple[State, Reply]:
    """``redisq/lua/extend.lua``. ARGV: prefix, group, token, now, px; replies 1, or 0 without a lease."""
    if bad := arguments.check("extend", argv):
        return state, bad
    _, group, token, now, px = argv

    if refused := fence(state, group, token):
        return state, refused
    tier, px_ms = tier_of(state, group), int(px)
    # The lock and the score move together, or a group whose lease was renewed would look due.
    state = state.set_lock(group, token, px_ms)
    state = state.zadd(tier, arguments.clock(now, state.now_ms) + px_ms, group)
    state = state.hset(group, tier)
    return state, Ok(1)
