"""A lane: the way of one sequential client to the server, on which connections are lost and its process is killed.

What happens to which command is planned beforehand, by its number; so a run with the same seed injects the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.support.proxy import CHUNK, command_size

SETTING_UP = (b"HELLO", b"CLIENT", b"AUTH", b"INFO", b"SELECT", b"COMMAND", b"READONLY")
"""With these a client greets the server; they are not counted."""
FAULTS = ("cut-before", "cut-after", "kill")
"""The connection is lost before the server sees the command; after it has run; the process gets SIGKILL when the
command has been sent."""


@dataclass
class Lane:
    """Listens on a port of its own. ``plan`` holds what happens to which command, counted from 1."""

    name: str
    target: tuple[str, int]
    plan: Mapping[int, str]
    pid: int = 0
    """The process to be killed."""
    addresses: list[str] = field(default_factory=list)
    """Of its connections, as the server sees them."""
    injected: list[tuple[int, str]] = field(default_factory=list)
    """What has happened."""
    _count: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends it and its connections."""
        for each in [self._listener, *self._sockets]:
            _cut(each)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self.target)
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._sockets += [client, server]
                self.addresses.append("{}:{}".format(*server.getsockname()))
                losing = threading.Event()
                threading.Thread(target=self._requests, args=(client, server, losing), daemon=True).start()
                threading.Thread(target=self._replies, args=(server, client, losing), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        buffer = b""
        with contextlib.suppress(OSError):
            while data := client.recv(CHUNK):
                buffer += data
                while size := command_size(buffer):
                    command, buffer = buffer[:size], buffer[size:]
                    self._carry(command, server, losing)
        _cut(server)
        _cut(client)

    def _carry(self, command: bytes, server: socket.socket, losing: threading.Event) -> None:
        fault = None
        if command.split(b"\r\n", 3)[2].upper() not in SETTING_UP:
            self._count += 1
            fault = self.plan.get(self._count)
        if fault is not None:
            self.injected.append((self._count, fault))
        if fault == "cut-before":
            raise OSError("planned")
        if fault == "cut-after":
            losing.set()
        server.sendall(command)
        if fault == "kill":
            os.kill(self.pid, signal.SIGKILL)

    def _replies(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while (data := server.recv(CHUNK)) and not losing.is_set():
                client.sendall(data)
        _cut(client)
        _cut(server)


def _cut(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
