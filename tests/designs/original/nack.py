"""The original design's nack, taken literally: four round trips. A control, never shipped."""

from collections.abc import Generator
from typing import Any


def nack(
    client: Any, prefix: bytes, group: bytes, token: bytes, now_ms: int, delay_ms: int
) -> Generator[str, None, int]:
    """Give a lease back; yields the name of each command before its round trip, and returns 1, or 0 if it is lost.

    ``client`` is redis-py-compatible and answers bytes.
    """
    lock = prefix + b":lock:" + group
    yield "GET"
    if client.execute_command("GET", lock) != token:
        return 0
    yield "HGET"
    tier = client.execute_command("HGET", prefix + b":prio", group) or b"0"
    ready = prefix + b":ready:" + tier
    yield "ZADD"
    client.execute_command("ZADD", ready, now_ms + delay_ms if delay_ms else 0, group)
    if delay_ms:
        yield "SET"
        client.execute_command("SET", lock, token, "PX", delay_ms)
    else:
        yield "DEL"
        client.execute_command("DEL", lock)
    return 1
