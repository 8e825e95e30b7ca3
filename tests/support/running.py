"""What a running server is to a test, wherever it runs: name, address, clock, clients, log."""

import contextlib
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import redis
from redis.connection import parse_url

from tests.support.clock import START_MS, Clock, ClockError, ShiftedClock, VirtualClock, ask
from tests.support.preload import InstantFile

START_SECONDS = 20.0
"""How long a server may take to start."""

ANSWER_SECONDS = 2.0
"""How long it may take to answer one of the calls made here."""


DEBUG_ARGS = ("--enable-debug-command", "yes")
"""Allows DEBUG from 7.0 on. Servers before that allow it anyway and do not start with an option they do not know."""


class ServerError(RuntimeError):
    """A server cannot be found, started or used; the message says what to do."""


class Guard:
    """Runs `command` and deletes `folder` when this process ends, however it ends, unless dismissed before."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        """The words of `command` are taken as they are: no shell reads them."""
        # Our end of the pipe closes with this process. In a process group of its own, so that ^C does not end it.
        line = ["/bin/sh", "-c", 'read -r _; "$@"; rm -rf "$0"', str(folder), *command]
        self._waiting = subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, process_group=0)

    def dismiss(self) -> None:
        """Nothing is run any more. May be called again."""
        self._waiting.kill()
        self._waiting.communicate()


class BaseServer(ABC):
    """A running server. A context manager that stops it."""

    name: str
    """Product and major.minor version: `redis-7.0`, `valkey-9.1`."""

    version: str
    """The full version: `7.0.15`."""

    url: str
    """`redis://host:port/db`, for any client."""

    port: int
    pid: int | None
    """The process id; None where the process is not ours."""

    clock: Clock

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._clients: list[redis.Redis] = []

    def client(self, **kwargs: Any) -> redis.Redis:
        """A new client; `kwargs` as for `redis.Redis`, over those of `url`. At the latest `stop` closes it."""
        parse: Callable[[str], dict[str, Any]] = parse_url
        client = redis.Redis.from_pool(redis.ConnectionPool(**{**parse(self.url), **kwargs}))
        self._clients.append(client)
        return client

    def flush(self) -> None:
        """Delete every key of the database in `url`."""
        with self._own_client() as client:
            ask(client, "FLUSHDB")

    @abstractmethod
    def log_tail(self, lines: int = 30) -> str:
        """The last lines of the server's log."""

    @abstractmethod
    def stop(self) -> None:
        """Close the clients, stop the server if it is ours and delete its files. May be called again."""

    def identify(self) -> dict[str, Any]:
        """Ask the server what it is and set `name` and `version`; answers its INFO server."""
        with self._own_client() as client:
            ask(client, "PING")
            info: dict[str, Any] = ask(client, "INFO", "server")
        self.version = str(info.get("valkey_version") or info["redis_version"])
        self.name = server_name(str(info.get("server_name") or "redis"), self.version)
        return info

    def _use_clock(self, file: InstantFile | None, reason: str) -> None:
        """Set `clock`: virtual if the server reads `file`, else shifted with the reason why.

        Under a virtual clock keys whose time is up are deleted by access alone. What the server deletes by itself it
        deletes at any moment, and Redis 8 one millisecond too early: active expiry takes a key at its deadline
        (`now < when` keeps it), access only after it (`now > when` deletes it).
        """
        client = redis.Redis.from_url(self.url, socket_timeout=ANSWER_SECONDS)
        if file is None:
            self.clock = ShiftedClock(client, reason)
        else:
            try:
                self.clock = VirtualClock(file, client, START_MS)
                self._stop_active_expiry()
            except (ClockError, redis.ResponseError) as error:
                file.write(0)
                file.close()
                self.clock = ShiftedClock(client, f"the server does not follow a preloaded clock: {error}")

    def _stop_active_expiry(self) -> None:
        with self._own_client() as client:
            ask(client, "DEBUG", "SET-ACTIVE-EXPIRE", 0)

    def _own_client(self) -> contextlib.closing[redis.Redis]:
        return contextlib.closing(redis.Redis.from_url(self.url, socket_timeout=ANSWER_SECONDS))

    def _close_clients(self) -> None:
        while self._clients:
            self._clients.pop().close()
        if hasattr(self, "clock"):
            self.clock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', 'not started')}>"


class ExternalServer(BaseServer):
    """A server given by URL: neither started nor stopped here, in a database that was empty when it was taken."""

    def __init__(self, url: str) -> None:
        """Take the database in `url`; `ServerError` if the server does not answer or the database is not empty."""
        super().__init__()
        self.url = url
        self.pid = None
        parts = urlsplit(url)
        self.port = parts.port or 6379
        where = f"{parts.hostname or 'localhost'}:{self.port}{parts.path}"  # never the password
        try:
            self.identify()
            with self._own_client() as client:
                keys = int(ask(client, "DBSIZE"))
        except redis.RedisError as error:
            raise ServerError(f"{where}: {error}. Is the server running, and may this user call INFO?") from error
        if keys:
            raise ServerError(
                f"{where}: the database holds {keys} keys, and the tests delete every key they find. Name a database "
                "that is empty and that nobody else uses, for example /15 at the end of the URL, or empty it yourself."
            )
        self._use_clock(None, "the clock of a server given by URL cannot be set")

    def log_tail(self, lines: int = 30) -> str:
        """Where to look: the log is not ours to read."""
        return "(the log of a server given by URL is where that server keeps it)"

    def stop(self) -> None:
        """Delete what the tests wrote, so that the next run finds the database empty again; close the clients."""
        if self._open:
            self._open = False
            with contextlib.suppress(redis.ConnectionError):
                self.flush()
            self._close_clients()

    _open = True


def server_name(product: str, version: str) -> str:
    """`redis` and `7.0.15` -> `redis-7.0`."""
    return f"{product}-{'.'.join(version.split('.')[:2])}"
