"""A TCP proxy before a server: it loses a request, loses a reply, or holds replies back.

It knows no protocol. What it is told to do it does to scripts alone, and not to the words with which a new connection
begins: to each connection from the first data on that hold the word EVAL.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

CHUNK = 1 << 16


class Proxy:
    """Carries every connection to the server at `url`, from a thread of its own. A context manager that ends it.

    What is to happen is told just before the script that it is to happen to.
    """

    def __init__(self, url: str) -> None:
        """Listens on a free loopback port; `self.url` is the server's through it."""
        parts = urlsplit(url)
        self._target = parts.hostname or "localhost", parts.port or 6379
        self._mode = ""
        self._held: list[tuple[socket.socket, bytes]] = []
        self._lock = threading.Lock()
        self._peers: dict[socket.socket, tuple[socket.socket, bool]] = {}  # to whom, and whether it comes from a client
        self._scripts: set[socket.socket] = set()  # the servers' ends on which a script was sent
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stop, self._stopped = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self.happened = threading.Event()
        """Set once what was told has happened."""
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        for each in (self._listener, self._stopped):
            self._selector.register(each, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def lose_request(self) -> None:
        """The next script reaches no server: the connection is cut before it."""
        self._tell("lose-request")

    def lose_reply(self) -> None:
        """The next script runs, and the connection is cut before its reply."""
        self._tell("lose-reply")

    def hold_replies(self) -> None:
        """The replies of scripts wait until `release`."""
        self._tell("hold")

    def release(self) -> None:
        """What was held back goes on its way, if anybody still waits for it."""
        with self._lock:
            self._mode = ""
            held, self._held = self._held, []
        for client, data in held:
            with contextlib.suppress(OSError):
                client.sendall(data)

    def _tell(self, mode: str) -> None:
        with self._lock:
            self.happened.clear()
            self._mode = mode

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                source = key.fileobj
                assert isinstance(source, socket.socket)
                if source is self._stopped:
                    return
                if source is self._listener:
                    self._accept()
                elif source in self._peers:
                    self._carry(source)

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(self._target)
        except OSError:  # it is being restarted
            client.close()
            return
        self._peers[client], self._peers[server] = (server, True), (client, False)
        for each in (client, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(each, selectors.EVENT_READ)

    def _carry(self, source: socket.socket) -> None:
        try:
            data = source.recv(CHUNK)
        except OSError:
            data = b""
        peer, from_client = self._peers[source]
        if from_client and b"EVAL" in data:
            self._scripts.add(peer)
        script = bool(data) and (peer if from_client else source) in self._scripts
        with self._lock:
            lost = script and self._mode == ("lose-request" if from_client else "lose-reply")
            held = script and self._mode == "hold" and not from_client
            if held:
                self._held.append((peer, data))
            if lost:
                self._mode = ""
        if lost or not data:
            self._cut(source)
        elif not held:
            try:
                peer.sendall(data)
            except OSError:
                self._cut(source)
        if lost or held:
            self.happened.set()

    def _cut(self, source: socket.socket) -> None:
        for each in (source, self._peers[source][0]):
            self._selector.unregister(each)
            self._scripts.discard(each)
            del self._peers[each]
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.close()
        self._thread.join()
        for each in list(self._peers):
            each.close()
        self._listener.close()
        self._stopped.close()
        self._selector.close()
