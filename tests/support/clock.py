"""Virtual time for a real server: a clock that is told what to show, or, failing that, state that is shifted.

All times are integer milliseconds since the epoch. `VirtualClock` decides what the server's clock says, to the
millisecond. `ShiftedClock` leaves that clock alone and moves what is stored: nothing is exact, a call lies somewhere
inside the bracket of two readings.
"""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import redis

from tests.support.preload import InstantFile

START_MS = 1_800_000_000_000
"""Where every virtual clock starts: an instant that no real clock shows by chance."""

TIERS = range(5)
FOLLOW_SECONDS = 1.0  # how long a server that keeps its time for a while may take to notice a new instant


class ClockError(RuntimeError):
    """The server's clock is not where the test put it, or cannot be put there."""


@dataclass
class Bracket:
    """Calls ran between these instants: each saw a time from `before_ms` to `after_ms`, as `Clock.now_ms` counts."""

    before_ms: int
    after_ms: int


class Clock(ABC):
    """The time a server lives in, as a test sees and moves it."""

    mode: ClassVar[Literal["virtual", "shifted"]]
    exact: ClassVar[bool]
    """True: the server's time is exactly what was set, so boundaries can be tested to the millisecond."""

    reason: str
    """Why the clock is not virtual; empty when it is."""

    offset_ms: int
    """How far `now_ms` is ahead of the server's TIME: a stored instant plus this is an instant of the test."""

    prefixes: list[bytes | str]
    """The queues whose state a shifted clock moves; fill it before the first step. A virtual one needs none."""

    @abstractmethod
    def now_ms(self) -> int:
        """The present instant of the test."""

    @abstractmethod
    def set_ms(self, ms: int, touch: Iterable[bytes | str] | None = None) -> None:
        """Move to the instant `ms`, forward, or back where the clock can (`ClockError` where it cannot)."""

    def advance(self, ms: int) -> None:
        """Let `ms` >= 0 milliseconds pass."""
        self.set_ms(self.now_ms() + not_negative(ms))

    @contextlib.contextmanager
    def bracket(self) -> Iterator[Bracket]:
        """Read the time before and after the calls made inside; `after_ms` holds at the end."""
        before_ms = self.now_ms()
        bracket = Bracket(before_ms, before_ms)
        yield bracket
        bracket.after_ms = self.now_ms()

    def close(self) -> None:
        """Let go of what the clock holds, if anything; it is not used afterwards."""
        return


class VirtualClock(Clock):
    """The preloaded clock of one server: it stands still, and moves only when told.

    So do the timers that the server keeps by its wall clock: the timeout of a blocked command, `appendfsync everysec`.
    `client` is a client of that server for this clock alone; replies are not decoded.
    """

    mode = "virtual"
    exact = True

    def __init__(self, file: InstantFile, client: redis.Redis, ms: int = START_MS) -> None:
        """Start at `ms`; `ClockError` if the server does not show it."""
        self.reason = ""
        self.offset_ms = 0
        self.prefixes = []
        self.ahead_ms = 0
        self._file = file
        self._client = client
        self._ms = ms
        self.set_ms(ms)

    def now_ms(self) -> int:
        """The instant last set; asks nobody."""
        return self._ms

    def set_ms(self, ms: int, touch: Iterable[bytes | str] | None = None) -> None:
        """Move to `ms` and return once TIME shows exactly that millisecond; `ClockError` if it does not.

        Before a step back every key of the client's database is read, so that one whose time is up, but which the
        server has not deleted yet, does not come alive again. `touch` names the keys to read instead of all.
        """
        if ms <= 0:
            raise ValueError(f"set_ms({ms}): a virtual instant is positive")
        if ms < self._ms:
            self._read_keys(touch)
        old_ms, self._ms = self._ms, ms
        self._file.write(ms)
        give_up = time.monotonic() + FOLLOW_SECONDS
        # Valkey 9.1 looks at the wall clock once per millisecond of real time and counts on by itself in between, so
        # it may still show the instant before, and microseconds inside a millisecond. Any other is another clock.
        while (shown_ms := server_ms(self._client)) != ms:
            if shown_ms != old_ms or time.monotonic() > give_up:
                raise ClockError(f"TIME shows {shown_ms} ms, not {ms} ms that was set (before: {old_ms} ms)")

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Within it the clock runs, with the machine's or as `run_ahead` says; then it stands where it stood."""
        self._file.write(0)
        try:
            yield
        finally:
            self.run_ahead(0)
            self._read_keys(None)
            self._file.write(self._ms)
            while server_ms(self._client) != self._ms:
                pass  # as in set_ms: the server looks at its clock once in a while

    def run_ahead(self, ms: int) -> None:
        """Lets a clock run so many milliseconds ahead of the machine's while it is released; negative: behind."""
        self.ahead_ms = ms
        self._file.run_ahead(ms)

    def _read_keys(self, touch: Iterable[bytes | str] | None) -> None:
        if touch is None:
            for _ in self._client.scan_iter(count=1000):  # SCAN deletes each key it meets whose time is up
                pass
        else:
            for key in touch:
                ask(self._client, "EXISTS", key)

    def close(self) -> None:
        """Unmap the memory file and drop the clock's connection."""
        self._file.close()
        self._client.close()


# A server before 7.0 tells only what is left of a lock, so there the deadline may come out a millisecond late.
SHIFT_DEADLINE = """
local at = redis.pcall('PEXPIRETIME', KEYS[1])
if type(at) == 'table' then
  at = redis.call('PTTL', KEYS[1])
  if at >= 0 then
    local now = redis.call('TIME')
    at = at + now[1] * 1000 + math.floor(now[2] / 1000)
  end
end
if at >= 0 then
  redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', at - ARGV[1]))
end
return 0
"""


class ShiftedClock(Clock):
    """Passing time on a server whose clock cannot be set: what is stored moves back instead.

    `now_ms` is the server's TIME plus all that was let pass, so it also runs on by itself. Scores move when they are
    positive: 0 means first, at any time. `client` is for this clock alone; replies are not decoded.
    """

    mode = "shifted"
    exact = False

    def __init__(self, client: redis.Redis, reason: str, prefixes: Iterable[bytes | str] = ()) -> None:
        """Start at the server's own time; `reason` says why the clock is not virtual."""
        self.reason = reason
        self.offset_ms = 0
        self.prefixes = list(prefixes)
        self._client = client

    def now_ms(self) -> int:
        """The server's TIME, in whole milliseconds, plus what was let pass."""
        return server_ms(self._client) + self.offset_ms

    def set_ms(self, ms: int, touch: Iterable[bytes | str] | None = None) -> None:
        """Let the time until `ms` pass; `ClockError` if `ms` is over already. `touch` is not needed here."""
        now_ms = self.now_ms()
        if ms < now_ms:
            raise ClockError(f"a shifted clock cannot go back from {now_ms} ms to {ms} ms")
        self.advance(ms - now_ms)

    def advance(self, ms: int) -> None:
        """Let `ms` >= 0 milliseconds pass: every positive score and every lock's deadline moves back by as much."""
        not_negative(ms)
        for prefix in map(as_bytes, self.prefixes):
            for tier in TIERS:
                self._shift_scores(prefix + b":ready:%d" % tier, ms)
            for key in list(self._client.scan_iter(match=glob_literal(prefix) + b":lock:*", count=1000)):
                ask(self._client, "EVAL", SHIFT_DEADLINE, 1, key, ms)
        self.offset_ms += ms

    def _shift_scores(self, key: bytes, ms: int) -> None:
        if ask(self._client, "TYPE", key) != b"zset":
            return
        rows: Any = self._client.zrange(key, 0, -1, withscores=True)
        scores = {bytes(member): float(score) for member, score in rows if score > 0}
        if scores and min(scores.values()) <= ms:
            raise ClockError(f"{key!r} holds the score {min(scores.values())}: too small for {ms} ms to pass")
        for member, score in scores.items():
            ask(self._client, "ZADD", key, "XX", repr(score - ms), member)

    def close(self) -> None:
        """Drop the clock's connection."""
        self._client.close()


def ask(client: redis.Redis, *words: bytes | str | int) -> Any:
    """One command, its reply as the client parses it."""
    execute: Callable[..., Any] = client.execute_command
    return execute(*words)


def server_ms(client: redis.Redis) -> int:
    """The server's TIME, in whole milliseconds since the epoch."""
    seconds, us = ask(client, "TIME")
    return int(seconds) * 1000 + int(us) // 1000


def not_negative(ms: int) -> int:
    """`ms`, if that much time can pass."""
    if ms < 0:
        raise ValueError(f"advance({ms}): the milliseconds that pass are never negative")
    return ms


def as_bytes(text: bytes | str) -> bytes:
    """`text` as it goes over the wire."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")


def glob_literal(text: bytes) -> bytes:
    """A pattern of SCAN that matches exactly `text`."""
    return b"".join(b"\\" + bytes([c]) if c in b"*?[]\\^-" else bytes([c]) for c in text)
