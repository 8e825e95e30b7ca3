"""A proxy before a server that knows where each command of a client begins, and lets something happen to the k-th.

So an operation of several round trips is seen from between them, deterministically, whatever language it is written in:
its command is held up, is lost with the connection before the server sees it or after it ran, is answered with an error
in the server's stead, or gets its reply late.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeAlias
from urllib.parse import urlsplit

CHUNK = 1 << 16
SETUP = frozenset({b"HELLO", b"AUTH", b"SELECT", b"CLIENT", b"PING", b"INFO", b"COMMAND", b"QUIT", b"READONLY"})
"""What a client sends for its connection's sake."""


@dataclass
class Link:
    """A connection of the client and the one to the server that belongs to it."""

    client: socket.socket
    server: socket.socket
    lose: bool = False  # the next reply, and the connection with it
    late: threading.Event | None = None  # the next reply waits for this

    def cut(self) -> None:
        """Both ends are closed."""
        for each in (self.client, self.server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


Happening: TypeAlias = Callable[[Link], bool]
"""What happens to a command: it returns whether the server sees it."""


def lost(link: Link) -> bool:
    """The connection breaks before the command reaches the server."""
    link.cut()
    return False


def unanswered(link: Link) -> bool:
    """The command runs, and the connection breaks before its reply."""
    link.lose = True
    return True


def answered(error: bytes) -> Happening:
    """The server does not see it; the client is answered this error, ``CODE text``."""

    def answer(link: Link) -> bool:
        link.client.sendall(b"-" + error + b"\r\n")
        return False

    return answer


def delayed(until: threading.Event) -> Happening:
    """The command runs, and its reply waits until this is set."""

    def delay(link: Link) -> bool:
        link.late = until
        return True

    return delay


class Proxy:
    """Carries every connection to the server at `url`. A context manager that ends it.

    `before(k, action)` runs `action` before the k-th command from now on, and only then lets it through; `plan` has
    something else happen to it.
    """

    def __init__(self, url: str) -> None:
        """Listens on a free loopback port; `self.url` is the server's through it."""
        parts = urlsplit(url)
        self._target = parts.hostname or "localhost", parts.port or 6379
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.addresses: list[str] = []
        """Of its connections, as the server sees them."""
        self._lock = threading.Lock()
        self._plan: tuple[int, Happening] | None = None
        self._counts: Callable[[bytes], bool] = lambda name: True
        self.came = 0
        """How many commands came since `before` or `plan`."""
        self.commands = 0
        """How many of them count."""
        self.names: list[bytes] = []
        """The names of those."""
        self.failed: BaseException | None = None
        """What an action raised."""
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def before(self, k: int, action: Callable[[], None]) -> None:
        """Plans `action` before the k-th command from now, counted from 1."""

        def hold(link: Link) -> bool:
            action()
            return True

        self.plan(k, hold)

    def plan(self, k: int, happening: Happening, counts: Callable[[bytes], bool] = lambda name: True) -> None:
        """Plans what happens to the k-th command from now, counted from 1, of those whose name `counts`."""
        with self._lock:
            self.came, self.commands, self.names = 0, 0, []
            self._plan, self._counts = (k, happening), counts

    def forget(self) -> bool:
        """Drops what was planned and did not happen; whether there was such a thing."""
        with self._lock:
            left, self._plan = self._plan is not None, None
        return left

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                self.addresses.append("{}:{}".format(*server.getsockname()))
                link = Link(client, server)
                threading.Thread(target=self._requests, args=(link,), daemon=True).start()
                threading.Thread(target=self._replies, args=(link,), daemon=True).start()

    def _requests(self, link: Link) -> None:
        buffer = b""
        with contextlib.suppress(OSError):
            while data := link.client.recv(CHUNK):
                buffer += data
                while size := command_size(buffer):
                    if self._goes_on(link, command_name(buffer[:size])):
                        link.server.sendall(buffer[:size])
                    buffer = buffer[size:]
            link.server.shutdown(socket.SHUT_WR)

    def _replies(self, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.server.recv(CHUNK):
                if link.lose:
                    link.cut()
                    return
                if link.late is not None:
                    link.late.wait()
                    link.late = None
                link.client.sendall(data)
            link.client.shutdown(socket.SHUT_WR)

    def _goes_on(self, link: Link, name: bytes) -> bool:
        with self._lock:
            self.came += 1
            if not self._counts(name):
                return True
            self.commands += 1
            self.names.append(name)
            happening = self._planned()
            try:
                return happening is None or happening(link)
            except BaseException as error:  # told to whoever planned it, in the thread that judges
                self.failed = error
                return True

    def _planned(self) -> Happening | None:
        """What happens to the command that was just counted."""
        if self._plan is None or self._plan[0] != self.commands:
            return None
        happening, self._plan = self._plan[1], None
        return happening

    def close(self) -> None:
        """Ends it and its connections."""
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def command_size(buffer: bytes) -> int:
    """How many bytes the first command takes: an array of bulk strings, or a line. 0 while it is not all there."""
    end = buffer.find(b"\r\n")
    if end < 0:
        return 0
    at = end + 2
    if buffer[:1] != b"*":
        return at
    for _ in range(int(buffer[1:end])):
        end = buffer.find(b"\r\n", at)
        if end < 0:
            return 0
        at = end + 2 + int(buffer[at + 1 : end]) + 2
    return at if at <= len(buffer) else 0


def command_name(command: bytes) -> bytes:
    """The name of a whole command, in capitals."""
    lines = command.split(b"\r\n", 3)
    return (lines[2] if command[:1] == b"*" and len(lines) > 2 else lines[0].split(b" ")[0]).upper()
