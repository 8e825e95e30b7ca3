"""fakeredis as a host: the scripts in process, under a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any

import fakeredis
import redis
import time_machine

from tests.support.clock import Clock, ClockError

# fakeredis compares float seconds. A fraction of a millisecond that falls with each step keeps a key through the
# millisecond of its deadline and no longer, as a server does.
FRACTION_US = 900.0
STEP_US = 1.5


class FakeClock(Clock):
    """The clock of one fakeredis server: ``time.time`` stands still while a command runs, and is real outside."""

    mode = "virtual"
    exact = True
    reason = ""
    offset_ms = 0

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._ms = 0
        self._fraction_us = FRACTION_US
        self.set_ms(1000)

    def now_ms(self) -> int:
        return self._ms

    def set_ms(self, ms: int, touch: Iterable[bytes | str] | None = None) -> None:
        """Move to ``ms``; with ``touch=()``, of an empty database, the fraction starts anew."""
        if touch == ():
            self._fraction_us = FRACTION_US
        elif ms < self._ms:
            with self.frozen():
                for key in self._client.keys("*"):
                    self._client.exists(key)
        self._ms = ms
        self._fraction_us -= STEP_US
        if self._fraction_us < 100:
            raise ClockError("too many steps of fakeredis's clock since the database was empty")
        with self.frozen():
            seconds, us = self._client.time()
        if seconds * 1000 + us // 1000 != ms:
            raise ClockError(f"TIME shows {seconds} s {us} µs, not the {ms} ms that were set")

    def frozen(self) -> AbstractContextManager[object]:
        """Within it ``time.time`` stands at the instant set."""
        return time_machine.travel(self._ms / 1000 + self._fraction_us / 1e6, tick=False)


class FakeHost:
    """One fakeredis server, shared by every client it gives out."""

    name = "fakeredis"

    def __init__(self) -> None:
        self.version = version("fakeredis")
        self.server = fakeredis.FakeServer()
        lua = self.client().eval("return _VERSION", 0)
        if lua != b"Lua 5.1":
            raise RuntimeError(f"fakeredis runs {lua!r}; the scripts are Lua 5.1: unset FAKEREDIS_LUA_VERSION")
        self.clock: Clock = FakeClock(self.client())

    def client(self, **kwargs: Any) -> redis.Redis:
        return fakeredis.FakeRedis(server=self.server, **kwargs)

    def async_client(self, **kwargs: Any) -> Any:
        return fakeredis.FakeAsyncRedis(server=self.server, **kwargs)

    def log_tail(self, lines: int = 30) -> str:
        return ""

    def stop(self) -> None:
        """Nothing to stop."""
