"""The subset of Lua and of Redis that the scripts keep to."""

from __future__ import annotations

from dataclasses import dataclass

PREFIX, HOLE = "<prefix>", "*"
"""In the shape of a string: the prefix of the queue, and any unknown part."""

GLOBALS = {"redis", "ARGV", "string", "math"}
FUNCTIONS = {"type", "tonumber", "tostring", "ipairs"}
LIBRARY = {("string", "find"), ("string", "format"), ("string", "sub"), ("math", "min"), ("math", "max")}
REDIS = {("redis", "call"), ("redis", "pcall"), ("redis", "error_reply")}
KEY_SPACE = {
    "lock": (rf"{PREFIX}:lock:\*", "prefix .. ':lock:' .. group"),
    "q": (rf"{PREFIX}:q:\*", "prefix .. ':q:' .. group"),
    "ready": (rf"{PREFIX}:ready:([0-4]|\*)", "prefix .. ':ready:' .. tier"),
    "prio": (rf"{PREFIX}:prio", "prefix .. ':prio'"),
}


@dataclass(frozen=True, slots=True)
class Command:
    """How the scripts use a command: on which keys of the key space, and with how many arguments, the key included."""

    keys: str
    least: int
    most: int


COMMANDS = {
    "TIME": Command("", 0, 0),
    "GET": Command("lock", 1, 1),
    "GETEX": Command("lock", 1, 1),
    "SET": Command("lock", 4, 4),
    "DEL": Command("lock", 1, 1),
    "PEXPIRE": Command("lock", 2, 2),
    "PTTL": Command("lock", 1, 1),
    "TYPE": Command("lock q", 1, 1),
    "LLEN": Command("q", 1, 1),
    "LINDEX": Command("q", 2, 2),
    "LPOP": Command("q", 1, 1),
    "RPUSH": Command("q", 2, 2),
    "HGET": Command("prio", 2, 2),
    "HSET": Command("prio", 3, 3),
    "HDEL": Command("prio", 2, 2),
    "ZADD": Command("ready", 3, 4),
    "ZREM": Command("ready", 2, 2),
    "ZSCORE": Command("ready", 2, 2),
    "ZRANGEBYSCORE": Command("ready", 3, 7),
}
SCRIPTS = {
    "publish": "HGET ZADD LLEN ZSCORE TIME HSET RPUSH",
    "claim": "TIME GETEX TYPE PTTL LINDEX HDEL ZREM ZRANGEBYSCORE ZADD SET",
    "ack": "GET LLEN HGET ZSCORE TIME DEL LPOP ZADD HSET HDEL ZREM",
    "nack": "GET HGET ZSCORE TIME DEL ZADD HSET SET",
    "extend": "GET HGET ZSCORE TIME PEXPIRE ZADD HSET",
}
FIRST_WRITE = {"claim": "GETEX", "ack": "DEL", "nack": "DEL", "extend": "PEXPIRE"}
READS = frozenset({"TIME", "GET", "EXISTS", "PTTL", "TYPE", "LLEN", "LINDEX", "HGET", "ZSCORE", "ZRANGEBYSCORE"})
"""Commands that write nothing. GETEX is not one: the server counts it as a write."""
