"""A proxy before a server that knows where each command of a client begins, and can do something before the k-th.

So an operation of several round trips is seen from between them, deterministically, whatever language it is written in.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 1 << 16


class Proxy:
    """Carries every connection to the server at `url`. A context manager that ends it.

    `before(k, action)` runs `action` before the k-th command from now on, and only then lets it through.
    """

    def __init__(self, url: str) -> None:
        """Listens on a free loopback port; `self.url` is the server's through it."""
        parts = urlsplit(url)
        self._target = parts.hostname or "localhost", parts.port or 6379
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self._lock = threading.Lock()
        self._plan: tuple[int, Callable[[], None]] | None = None
        self.commands = 0
        """How many commands came through since `before`."""
        self.failed: BaseException | None = None
        """What an action raised."""
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        threading.Thread(target=self._accept, daemon=True).start()

    def before(self, k: int, action: Callable[[], None]) -> None:
        """Plans `action` before the k-th command from now, counted from 1."""
        with self._lock:
            self.commands, self._plan = 0, (k, action)

    def forget(self) -> None:
        """Drops what was planned and did not happen."""
        with self._lock:
            self._plan = None

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._target)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._replies, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        buffer = b""
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                buffer += data
                while size := command_size(buffer):
                    self._count()
                    server.sendall(buffer[:size])
                    buffer = buffer[size:]
            server.shutdown(socket.SHUT_WR)

    def _replies(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(CHUNK):
                client.sendall(data)
            client.shutdown(socket.SHUT_WR)

    def _count(self) -> None:
        with self._lock:
            self.commands += 1
            if self._plan is not None and self._plan[0] == self.commands:
                _, action = self._plan
                self._plan = None
                try:
                    action()
                except BaseException as error:  # told to whoever planned it, in the thread that judges
                    self.failed = error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


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
