"""Foreign writes: what an operator, an eviction, a partial restore or another program may do to the keys.

None of them is the queue's doing; the model specifies how the scripts behave afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from model.operation import Operation
from model.state import Lock, State

CROWD_TOKEN = b"crowd"


def crowd(tier: int, size: int) -> list[bytes]:
    """The groups of a crowd; each tier has its own."""
    return [b"crowd%d-%02d" % (tier, number) for number in range(size)]


def foreign(state: State, operation: Operation) -> State:
    """The state after the foreign write that ``operation`` names (``model.operation.FOREIGN``)."""
    match operation.args:
        case {"size": int(size), "tier": int(tier), "score_ms": int(score_ms), **rest}:
            visibility_ms, messages = rest["visibility_ms"], rest["messages"]
            assert isinstance(visibility_ms, int)
            assert isinstance(messages, int)
            for group in crowd(tier, size):
                state = _without(state, tier, group).zadd(tier, score_ms, group).hset(group, tier)
                for number in range(messages):
                    state = state.rpush(group, b"%d" % number)
                if visibility_ms:
                    state = state.set_lock(group, CROWD_TOKEN, visibility_ms)
        case {"size": int(size), "tier": int(tier)}:
            for group in crowd(tier, size):
                state = _without(state, tier, group)
        case {"group": bytes(group)}:
            state = _on_group(state, operation, group)
    return state


def _without(state: State, tier: int, group: bytes) -> State:
    """Without anything of the group: a crowd starts anew, and leaves nothing behind."""
    state = state.zrem(tier, group).hdel(group)
    queues, locks = dict(state.queues), dict(state.locks)
    queues.pop(group, None)
    locks.pop(group, None)
    return replace(state, queues=queues, locks=locks)


def _on_group(state: State, operation: Operation, group: bytes) -> State:
    queues, locks, prio = dict(state.queues), dict(state.locks), dict(state.prio)
    lock = state.lock(group)
    match operation.op, operation.args:
        case "drop-list", _:
            queues.pop(group, None)
        case "break-list", _:
            queues[group] = None
        case "persist-lock", _:
            if lock is not None:
                locks[group] = Lock(lock.value, None)
        case "drop-lock", _:
            locks.pop(group, None)
        case "break-lock", _:
            # The lock's TTL stays; a group that had no lock gets one without a TTL. In the millisecond of its
            # deadline no time is left to set: the lock is gone.
            locks[group] = Lock(None, lock.deadline_ms if lock is not None else None)
            if lock is not None and lock.deadline_ms == state.now_ms:
                del locks[group]
        case "drop-prio", _:
            prio.pop(group, None)
        case "set-prio", {"value": bytes(value)}:
            prio[group] = value
        case "drop-entry", {"tier": int(tier)}:
            return state.zrem(tier, group)
        case "set-entry", {"tier": int(tier), "score_ms": int(score_ms)}:
            return state.zadd(tier, score_ms, group)
    return replace(state, queues=queues, locks=locks, prio=prio)
