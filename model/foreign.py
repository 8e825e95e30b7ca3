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
    if operation.op not in ("crowd", "disperse"):
        return _on_group(state, operation, _bytes(operation, "group"))
    tier = _number(operation, "tier")
    for group in crowd(tier, _number(operation, "size")):
        state = _without(state, tier, group)
        if operation.op == "crowd":
            state = state.zadd(tier, _number(operation, "score_ms"), group).hset(group, tier)
            for number in range(_number(operation, "messages")):
                state = state.rpush(group, b"%d" % number)
            if visibility_ms := _number(operation, "visibility_ms"):
                state = state.set_lock(group, CROWD_TOKEN, visibility_ms)
    return state


def _number(operation: Operation, name: str) -> int:
    value = operation[name]
    assert isinstance(value, int)
    return value


def _bytes(operation: Operation, name: str) -> bytes:
    value = operation[name]
    assert isinstance(value, bytes)
    return value


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
    match operation.op:
        case "drop-list":
            queues.pop(group, None)
        case "break-list":
            queues[group] = None
        case "persist-lock":
            if lock is not None:
                locks[group] = Lock(lock.value, None)
        case "drop-lock":
            locks.pop(group, None)
        case "break-lock":
            # The lock's TTL stays; a group that had no lock gets one without a TTL. In the millisecond of its
            # deadline no time is left to set: the lock is gone.
            locks[group] = Lock(None, lock.deadline_ms if lock is not None else None)
            if lock is not None and lock.deadline_ms == state.now_ms:
                del locks[group]
        case "drop-prio":
            prio.pop(group, None)
        case "set-prio":
            prio[group] = _bytes(operation, "value")
        case "drop-entry":
            return state.zrem(_number(operation, "tier"), group)
        case _:
            assert operation.op == "set-entry"
            return state.zadd(_number(operation, "tier"), _number(operation, "score_ms"), group)
    return replace(state, queues=queues, locks=locks, prio=prio)
