"""publish: appends one message to the FIFO of its group and indexes the group in its tier."""

from __future__ import annotations

from collections.abc import Sequence

from model import arguments
from model.operation import WRONGTYPE, Ok, Reply
from model.state import State


def publish(state: State, argv: Sequence[bytes]) -> tuple[State, Reply]:
    """``redisq/lua/publish.lua``. ARGV: prefix, group, payload, priority [, score]; replies the queue's length."""
    if bad := arguments.check("publish", argv):
        return state, bad
    _, group, payload, priority, score = argv if len(argv) == 5 else (*argv, b"0")

    tier = state.tier_of(group)
    if tier is not None:
        # A known group has its entry; this brings back only one that was lost.
        state = state.zadd_nx(tier, 0, group)
    else:
        tier = arguments.tier(priority)
        messages = state.messages(group)
        if messages is None:
            return state, WRONGTYPE
        if messages:
            # The field is lost or spoilt: the group stays in the tier that knows it.
            known = state.tier_that_knows(group)
            tier = tier if known is None else known
        state = state.zadd_nx(tier, arguments.clock(score, state.now_ms), group)
        state = state.hset(group, tier)
    if state.messages(group) is None:
        return state, WRONGTYPE
    state = state.rpush(group, payload)
    return state, Ok(len(state.messages(group) or ()))
