"""The key space: the only place that spells a key name.

| key | type | holds |
| --- | --- | --- |
| `{prefix}:q:{group}` | list | the group's FIFO, the oldest message at index 0 |
| `{prefix}:lock:{group}` | string with a TTL | the token of the lease, or `parked` |
| `{prefix}:ready:{0..4}` | sorted set | the groups of a tier by the epoch-ms at which each is next claimable |
| `{prefix}:prio` | hash | the priority of each group that has messages |
"""

from dataclasses import dataclass, field

PARKED = b"parked"
"""The value of the lock of a group that waits for a retry: no token, so nobody can settle with it."""

TIERS = (0, 1, 2, 3, 4)
"""The priority tiers, the lowest first."""

FAMILIES = ("q", "lock", "ready")
"""The words that part a prefix from a group or a tier, and so must not be a part of a prefix."""


def encode(text: str | bytes) -> bytes:
    """The bytes of a text: UTF-8 with surrogateescape. Bytes are passed through.

    Raises `UnicodeEncodeError` for a surrogate that stands for no byte.
    """
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def decode(data: bytes) -> str:
    """The text of any bytes: UTF-8 with surrogateescape, so that `encode` gives the same bytes back."""
    return data.decode("utf-8", "surrogateescape")


def hash_tag(prefix: str) -> str:
    """The part of a prefix that Redis Cluster hashes, '' if there is none: between the first `{` and the next `}`."""
    tag, closed, _ = prefix.partition("{")[2].partition("}")
    return tag if closed else ""


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one queue. Every key is `bytes`; a group is `str` or `bytes`, a tier 0 to 4."""

    prefix: bytes
    """The prefix as it goes over the wire."""
    prio: bytes = field(init=False)
    """The hash of priorities, and the key that routes every script in a cluster."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "prio", self.prefix + b":prio")

    def q(self, group: str | bytes) -> bytes:
        """The list that holds the messages of a group."""
        return self.prefix + b":q:" + encode(group)

    def lock(self, group: str | bytes) -> bytes:
        """The string that holds the token of a group's lease."""
        return self.prefix + b":lock:" + encode(group)

    def ready(self, tier: int) -> bytes:
        """The sorted set that holds the groups of a tier."""
        return self.prefix + b":ready:%d" % tier
