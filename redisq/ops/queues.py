"""The queues of a database, and those of them that share keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from redisq.keys import FAMILIES

MOST = 1_000_000
"""How many keys are looked through."""
COUNT = 1_000
"""How many in one round trip."""


def prefixes(client: Any) -> tuple[set[bytes], bool]:
    """The prefixes of all queues that have messages, and whether all keys were looked through.

    A queue with messages has a hash `{prefix}:prio`.
    """
    found: set[bytes] = set()
    cursor, asked = 0, 0
    while True:
        reply = client.execute_command(
            "SCAN", cursor, "MATCH", "*:prio", "COUNT", COUNT, "TYPE", "hash", NEVER_DECODE=True
        )
        cursor, keys = int(reply[0]), reply[1]
        found.update(key.removesuffix(b":prio") for key in keys)
        asked += COUNT
        if cursor == 0 or asked >= MOST:
            return found, cursor == 0


def collisions(found: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The pairs of prefixes of which the second begins like the first and goes on with a word of the key space."""
    known = set(found)
    words = {family.encode() for family in FAMILIES}
    for inner in known:
        parts = inner.split(b":")
        for at in range(1, len(parts)):
            outer = b":".join(parts[:at])
            if outer in known and parts[at] in words:
                yield outer, inner
