"""The key space of a server: read whole in one round trip, and written to as a foreigner would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from model.foreign import CROWD_TOKEN, crowd
from model.operation import Operation, Value
from model.state import TIERS, Lock, State

COLON = ord(":")

READ = """
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok, ''
  if kind == 'string' then
    value = redis.call('GET', key)
  elseif kind == 'list' then
    value = redis.call('LRANGE', key, '0', '-1')
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES')
  elseif kind == 'hash' then
    value = redis.call('HGETALL', key)
  end
  out[#out + 1] = { key, kind, redis.call('PTTL', key), value }
end
return out
"""


def read_keyspace(client: Any, prefixes: Iterable[bytes], now_ms: int) -> dict[bytes, State]:
    """Every key of the client's database, as the state of each prefix at ``now_ms``.

    A key that is none of the key space, or carries a TTL it should not have, is a stray of the first prefix.
    """
    readers = {prefix: _Reader(prefix, now_ms) for prefix in prefixes}
    first = next(iter(readers.values()))
    for key, kind, ttl_ms, value in client.execute_command("EVAL", READ, 0):
        # Where one prefix begins like another, the longer one is meant.
        owners = [key[:at] for at, byte in enumerate(key) if byte == COLON and key[:at] in readers]
        if not owners or not readers[owners[-1]].take(key, kind, ttl_ms, value):
            first.strays.append(key)
    return {prefix: reader.state() for prefix, reader in readers.items()}


class _Reader:
    """Collects the keys of one prefix."""

    def __init__(self, prefix: bytes, now_ms: int) -> None:
        self.prefix = prefix
        self.now_ms = now_ms
        self.queues: dict[bytes, tuple[bytes, ...] | None] = {}
        self.locks: dict[bytes, Lock] = {}
        self.ready: list[dict[bytes, int]] = [{} for _ in range(TIERS)]
        self.prio: dict[bytes, bytes] = {}
        self.strays: list[bytes] = []

    def take(self, key: bytes, kind: bytes, ttl_ms: int, value: Any) -> bool:
        """File the key; False when it is none of the key space."""
        family, _, group = key.removeprefix(self.prefix + b":").partition(b":")
        if family == b"lock" and group:
            deadline_ms = None if ttl_ms < 0 else self.now_ms + ttl_ms
            self.locks[group] = Lock(value if kind == b"string" else None, deadline_ms)
        elif ttl_ms >= 0:
            return False
        elif family == b"q" and group:
            self.queues[group] = tuple(value) if kind == b"list" else None
        elif family == b"ready" and kind == b"zset" and group in (b"0", b"1", b"2", b"3", b"4"):
            self.ready[int(group)] = {member: _score(score) for member, score in _pairs(value)}
        elif key == self.prefix + b":prio" and kind == b"hash":
            self.prio = dict(_pairs(value))
        else:
            return False
        return True

    def state(self) -> State:
        """The state these keys make."""
        return State(self.now_ms, self.queues, self.locks, tuple(self.ready), self.prio, tuple(sorted(self.strays)))


def _pairs(flat: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _score(text: bytes) -> Any:
    number = float(text)
    return int(number) if number.is_integer() else number


def foreign_commands(operation: Operation) -> list[tuple[object, ...]]:
    """The Redis commands of a foreign write (``model/foreign.py``), each a command with its arguments."""
    prefix, args = operation.prefix, operation.args
    if operation.op == "wait":
        return []
    if operation.op in ("crowd", "disperse"):
        return list(_crowd_commands(operation))
    group = args["group"]
    assert isinstance(group, bytes)
    q, lock, prio = prefix + b":q:" + group, prefix + b":lock:" + group, prefix + b":prio"
    match operation.op:
        case "drop-list":
            return [("DEL", q)]
        case "break-list":
            return [("SET", q, "of another type")]
        case "persist-lock":
            return [("PERSIST", lock)]
        case "drop-lock":
            return [("DEL", lock)]
        case "break-lock":
            # The type changes and the time that is left does not.
            return [("EVAL", BREAK_LOCK, 1, lock)]
        case "drop-prio":
            return [("HDEL", prio, group)]
        case "set-prio":
            return [("HSET", prio, group, args["value"])]
        case "drop-entry":
            return [("ZREM", prefix + b":ready:" + _digits(args["tier"]), group)]
        case "set-entry":
            return [("ZADD", prefix + b":ready:" + _digits(args["tier"]), operation["score_ms"], group)]
    raise AssertionError(f"{operation.op} is no foreign write")


def _digits(value: Value) -> bytes:
    return str(value).encode()


def _crowd_commands(operation: Operation) -> Iterator[tuple[object, ...]]:
    prefix, tier, size = operation.prefix, operation["tier"], operation["size"]
    assert isinstance(size, int)
    assert isinstance(tier, int)
    groups = crowd(tier, size)
    if not groups:
        return
    yield "DEL", *(prefix + kind + group for group in groups for kind in (b":q:", b":lock:"))
    yield "ZREM", prefix + b":ready:" + _digits(tier), *groups
    yield "HDEL", prefix + b":prio", *groups
    if operation.op == "disperse":
        return
    messages, visibility_ms = operation["messages"], operation["visibility_ms"]
    assert isinstance(messages, int)
    entries = [item for group in groups for item in (operation["score_ms"], group)]
    yield "ZADD", prefix + b":ready:" + _digits(tier), *entries
    yield "HSET", prefix + b":prio", *(item for group in groups for item in (group, tier))
    for group in groups:
        if messages:
            yield "RPUSH", prefix + b":q:" + group, *range(messages)
        if visibility_ms:
            yield "SET", prefix + b":lock:" + group, CROWD_TOKEN, "PX", visibility_ms


BREAK_LOCK = """
local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
if left == 0 then return end
redis.call('RPUSH', KEYS[1], 'of another type')
if left > 0 then redis.call('PEXPIRE', KEYS[1], string.format('%.0f', left)) end
"""
