"""ack: settles a lease: removes the message it delivered and frees its group."""

from __future__ import annotations

from collections.abc import Sequence

from model import arguments
from model.operation import WRONGTYPE, Ok, Reply
from model.settle import fence, tier_of
from model.state import State


def ack(state: State, argv: Sequence[bytes]) -> tuple[State, Reply]:
    """``redisq/lua/ack.lua``. ARGV: prefix, group, token, now; replies 1, or 0 when the token holds no lease."""
    if bad := arguments.check("ack", argv):
        return state, bad
    _, group, token, now = argv

    if refused := fence(state, group, token):
        return state, refused
    messages = state.messages(group)
    if messages is None:
        return state, WRONGTYPE
    tier = tier_of(state, group)
    if len(messages) > 1:
        state = state.del_lock(group)
        state = state.lpop(group)
        state = state.zadd(tier, arguments.clock(now, state.now_ms), group)
        state = state.hset(group, tier)
    else:
        state = state.del_lock(group)
        state = state.lpop(group)
        state = state.hdel(group)
        state = state.zrem(tier, group)
    return state, Ok(1)
