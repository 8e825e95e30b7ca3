"""The scripts and everything about a call that needs no I/O, shared by both transports.

A `Call` is a script with its KEYS and ARGV encoded, and the way to read its reply. The transports only carry it.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha1
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Generic, NamedTuple, Self, SupportsIndex, TypeVar

from redisq import arguments
from redisq.errors import RedisqError, invalid
from redisq.keys import Keys, decode, encode
from redisq.lease import Lease

T_co = TypeVar("T_co", covariant=True)
Message = tuple[str | bytes, str | bytes] | tuple[str | bytes, str | bytes, SupportsIndex]
Command = tuple[str | bytes | int, ...]

NAMES = ("publish", "claim", "ack", "nack", "extend")
"""The scripts, in the order in which a message meets them."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script, byte for byte as it lies in its file."""

    name: str
    source: bytes
    sha: str
    """The SHA-1 of the source in lower-case hexadecimal, under which a server caches it."""

    @classmethod
    def read(cls, folder: Traversable, name: str) -> Self:
        """The script of that name in a folder. Raises `FileNotFoundError`."""
        source = (folder / f"{name}.lua").read_bytes()
        return cls(name, source, sha1(source, usedforsecurity=False).hexdigest())


def load(folder: Traversable) -> dict[str, Script]:
    """The five scripts of a folder by name. Raises `FileNotFoundError` if one is missing."""
    return {name: Script.read(folder, name) for name in NAMES}


SCRIPTS = load(files("redisq") / "lua")
"""The scripts of this package by name."""


class Call(NamedTuple, Generic[T_co]):
    """One run of a script."""

    script: Script
    args: tuple[bytes, ...]
    """The one key, then ARGV."""
    read: Callable[[Any], T_co]
    """Turns the undecoded reply into what the operation returns."""

    @property
    def group(self) -> bytes:
        """The group of a call that names one: its second ARGV."""
        return self.args[2]

    @property
    def by_sha(self) -> Command:
        """The command that runs the script from the server's cache."""
        return "EVALSHA", self.script.sha, 1, *self.args

    @property
    def by_source(self) -> Command:
        """The command that brings the script along, and so also loads it: it needs no right to SCRIPT LOAD."""
        return "EVAL", self.script.source, 1, *self.args


def new_token(worker_id: str) -> str:
    """A token that no other claim has: the worker's id, if any, for people who look at locks, and 128 random bits."""
    random = os.urandom(16).hex()
    return f"{worker_id}:{random}" if worker_id else random


class Calls:
    """Checks the arguments of each operation and encodes its call. Raises `InvalidArgument`."""

    def __init__(
        self,
        prefix: bytes,
        clock: Callable[[], float] | None,
        candidates: SupportsIndex,
        new_groups: str,
        scripts: Mapping[str, Script] = SCRIPTS,
    ) -> None:
        self._head = (Keys(prefix).prio, prefix)
        self._clock = arguments.clock(clock)
        self._candidates = b"%d" % arguments.integer("candidates", candidates, 1, 99)
        self._arrival = arguments.new_groups(new_groups)
        self.scripts = scripts

    def _call(self, name: str, read: Callable[[Any], T_co], *argv: bytes) -> Call[T_co]:
        return Call(self.scripts[name], self._head + argv, read)

    def publish(self, group: str | bytes, payload: str | bytes, priority: SupportsIndex, where: str = "") -> Call[int]:
        """The call that appends a message. `where` comes before the names of arguments in errors."""
        return self._call(
            "publish",
            _length,
            arguments.data(f"{where}group", group),
            arguments.data(f"{where}payload", payload, empty=True),
            arguments.priority(f"{where}priority", priority),
            arguments.now(self._clock) if self._arrival else b"0",
        )

    def messages(self, messages: Iterable[Message]) -> list[Call[int]]:
        """The calls that append many messages, all of them checked."""
        calls = []
        for index, message in enumerate(messages):
            if not isinstance(message, tuple | list) or not 2 <= len(message) <= 3:
                raise invalid(f"messages[{index}]", message, "(group, payload) or (group, payload, priority)")
            group, payload, priority = message if len(message) == 3 else (*message, 0)
            calls.append(self.publish(group, payload, priority, f"messages[{index}]."))
        return calls

    def claim(self, visibility: float, min_priority: SupportsIndex, worker_id: str) -> Call[Lease | None]:
        """The call that leases a group."""
        px = arguments.duration("visibility", visibility)
        tier = arguments.priority("min_priority", min_priority)
        arguments.data("worker_id", worker_id, empty=True, kind=str)
        token = new_token(worker_id)
        seconds = float(visibility)
        now = arguments.now(self._clock)
        deadline = time.monotonic() + seconds

        def lease(reply: Any) -> Lease | None:
            if reply is None:
                return None
            match reply:
                case [bytes(group), bytes(payload)]:
                    return Lease(decode(group), payload, token, seconds, deadline)
            raise _unexpected("claim", reply)

        return self._call("claim", lease, now, px, encode(token), self._candidates, tier)

    def claims(
        self, count: SupportsIndex, visibility: float, min_priority: SupportsIndex, worker_id: str
    ) -> list[Call[Lease | None]]:
        """The calls of many claims, each with a token of its own."""
        times = range(arguments.integer("count", count, 1, arguments.MAX_CALLS))
        return [self.claim(visibility, min_priority, worker_id) for _ in times]

    def ack(self, lease: Lease) -> Call[bool]:
        """The call that settles a lease for good."""
        group, token = arguments.settling(lease)
        return self._call("ack", _settled, group, token, arguments.now(self._clock))

    def nack(self, lease: Lease, delay: float) -> Call[bool]:
        """The call that gives a lease back."""
        group, token = arguments.settling(lease)
        delay_ms = arguments.duration("delay", delay, zero=True)
        return self._call("nack", _settled, group, token, arguments.now(self._clock), delay_ms)

    def extend(self, lease: Lease, visibility: float) -> Call[Lease | None]:
        """The call that renews a lease."""
        group, token = arguments.settling(lease)
        px = arguments.duration("visibility", visibility)
        seconds = float(visibility)
        now = arguments.now(self._clock)
        deadline = time.monotonic() + seconds

        def renewed(reply: Any) -> Lease | None:
            return Lease(lease.group, lease.payload, lease.token, seconds, deadline) if _settled(reply) else None

        return self._call("extend", renewed, group, token, now, px)


def _length(reply: Any) -> int:
    if type(reply) is not int:
        raise _unexpected("publish", reply)
    return reply


def _settled(reply: Any) -> bool:
    if reply == 1 or reply == 0:
        return bool(reply)
    raise _unexpected("a settling script", reply)


def _unexpected(script: str, reply: object) -> RedisqError:
    return RedisqError(
        f"{script} answered {type(reply).__name__}, which it never does: is the client redis-py-compatible?"
    )
