"""Checks arguments and encodes them for the wire. Every refusal is an `InvalidArgument`; no I/O happens here."""

import inspect
import math
import operator
from collections.abc import Callable
from functools import lru_cache
from numbers import Real
from typing import Any, SupportsIndex

from redisq.errors import invalid
from redisq.keys import FAMILIES, PARKED, TIERS, decode, encode, hash_tag
from redisq.lease import Lease

MAX_BYTES = 512 * 1024 * 1024
"""The longest string a Redis server takes by default, in bytes."""
MAX_SECONDS = 10 * 365 * 24 * 3600
"""The longest visibility and delay in seconds: ten years of 365 days."""
MAX_CLOCK = 10**12
"""What a client's clock stays below, in seconds: a time on the wire has at most fifteen digits of milliseconds."""
MAX_CALLS = 10_000
"""The most calls in one round trip."""

Kind = type[str] | tuple[type[str], type[bytes]]
_TIERS = tuple(b"%d" % tier for tier in TIERS)


def data(argument: str, value: object, *, empty: bool = False, kind: Kind = (str, bytes)) -> bytes:
    """The bytes of a `str` (UTF-8 with surrogateescape) or `bytes`, at most 512 MB, and not empty unless allowed.

    `kind=str` takes a `str` only. A `bytearray` or `memoryview` is always refused: it could change between the check
    and the send.
    """
    if not isinstance(value, kind):
        raise invalid(argument, value, "a str" if kind is str else "str or bytes")
    try:
        encoded = encode(value)
    except UnicodeEncodeError:
        raise invalid(argument, value, "a str that UTF-8 can encode (a lone surrogate is none), or bytes") from None
    if not encoded and not empty:
        raise invalid(argument, value, "not empty")
    if len(encoded) > MAX_BYTES:
        raise invalid(argument, value, f"at most {MAX_BYTES} bytes (512 MB)")
    return encoded


def integer(argument: str, value: SupportsIndex, lowest: int, highest: int) -> int:
    """An `int` in a range, both ends included."""
    number = _index(argument, value)
    if not lowest <= number <= highest:
        raise invalid(argument, value, f"{lowest} to {highest}")
    return number


def priority(argument: str, value: SupportsIndex) -> bytes:
    """An integer of any size, clamped to 0 to 4."""
    return _TIERS[min(max(_index(argument, value), 0), 4)]


def _index(argument: str, value: SupportsIndex) -> int:
    if type(value) is int:
        return value
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise invalid(argument, value, "an integer")


def duration(argument: str, value: float, *, zero: bool = False) -> bytes:
    """Seconds as milliseconds, rounded up after rounding to a nanosecond, so 2.007 s is 2007 ms and none becomes 0."""
    seconds = value if type(value) is float else _real(value)
    if 0 < seconds <= MAX_SECONDS:
        return _milliseconds(seconds)
    if zero and seconds == 0:
        return b"0"
    bounds = "0 or more" if zero else "more than 0"
    raise invalid(argument, value, f"a number of seconds, {bounds} and at most {MAX_SECONDS} (ten years)")


@lru_cache  # a program uses few different durations, and rounding is the dearest part of a call
def _milliseconds(seconds: float) -> bytes:
    return b"%d" % max(math.ceil(round(seconds * 1000, 6)), 1)


def now(clock: Callable[[], float] | None) -> bytes:
    """The client's time in milliseconds, rounded down as the server's TIME is; empty for the server's clock."""
    if clock is None:
        return b""
    value = clock()
    seconds = _real(value)
    if not 0 <= seconds < MAX_CLOCK:
        raise invalid("clock", value, f"a callable that returns seconds, 0 or more and less than {MAX_CLOCK}")
    return b"%d" % math.floor(round(seconds * 1000, 6))


def _real(value: object) -> float:
    # What is no number becomes nan, which is outside of every range.
    if type(value) is float or type(value) is int:
        return value
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a fraction can be larger than any float
        return math.inf


def settling(lease: Lease) -> tuple[bytes, bytes]:
    """Group and token of a lease that is to be settled."""
    if not isinstance(lease, Lease):
        raise invalid("lease", lease, "a Lease, as claim returns it")
    group = data("lease.group", lease.group, kind=str)
    token = data("lease.token", lease.token, kind=str)
    if token == PARKED:
        raise invalid("lease.token", lease.token, f"another token than {decode(PARKED)!r}, which marks a parked group")
    return group, token


def clock(value: Callable[[], float] | None) -> Callable[[], float] | None:
    """The clock of a transport."""
    if value is not None and not callable(value):
        raise invalid("clock", value, "None (the server's clock) or a callable that returns seconds")
    return value


def new_groups(value: str) -> bool:
    """Whether a new group starts at its arrival, and not before every group that was served."""
    if value not in ("first", "arrival"):
        raise invalid("new_groups", value, "'first' or 'arrival'")
    return value == "arrival"


def prefix(value: str, client: object) -> bytes:
    """The prefix of a queue.

    `p` and `p:q` would share keys (the group `lock:y` of the one, `y` of the other), so no part after the first may
    be a word of the key space. All keys of a queue must be in one slot of a cluster.
    """
    encoded = data("prefix", value, kind=str)
    for part in value.split(":")[1:]:
        if part in FAMILIES:
            fix = value.replace(":", "-")
            allowed = f"without {part!r} as a part after a colon, or another queue could share keys with it"
            raise invalid("prefix", value, f"{allowed} (such as {fix!r})")
    if _named(client, "Cluster") and not hash_tag(value):
        fix = "{" + (value.replace("{", "").replace("}", "") or "redisq") + "}"
        raise invalid(
            "prefix", value, f"one with a hash tag for a cluster client, all keys in one slot (such as {fix!r})"
        )
    return encoded


def client(value: Any, owner: str) -> None:
    """The client of the transport whose class is named `owner`: not of the other kind, and no pipeline."""
    command = getattr(value, "execute_command", None)
    if not callable(command) or not callable(getattr(value, "pipeline", None)) or isinstance(value, type):
        raise invalid("client", value, "a redis-py-compatible client, with execute_command and pipeline")
    if _named(value, "Pipeline"):
        raise invalid("client", value, "a client and not a pipeline: replies are needed at once")
    asynchronous = inspect.iscoroutinefunction(command) or hasattr(type(value), "aclose")
    right = "AsyncRedisTransport" if asynchronous else "RedisTransport"
    if owner != right:
        kind = "a client of blocking calls" if asynchronous else "an asyncio client"
        raise invalid("client", value, f"{kind} for {owner} (this one is for {right})")


def _named(value: object, word: str) -> bool:
    # By name, for no client library is imported here. Not by a ...ClusterCommands, which every client of redis-py is.
    return any(word in base.__name__ and not base.__name__.endswith("Commands") for base in type(value).__mro__)
