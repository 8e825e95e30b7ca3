"""Lines of MONITOR, from raw bytes: client libraries decode them, and lose arguments that are no text.

A line is ``1339518083.107412 [0 127.0.0.1:60866] "GET" "p:lock:g\\x00"``: seconds and microseconds of the server's
clock, the database, who sent it (``lua``: a script, for its caller), and each argument with ``\\xNN`` for what is not
printable. A file of such lines is what ``redis-cli monitor`` prints, too.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from redis.connection import parse_url

CHUNK = 1 << 18
CONNECT_SECONDS = 10.0
LUA = "lua"

_LINE = re.compile(rb"\+?(\d+)\.(\d{6}) \[(\d+) (.*?)\] (\".*\")\s*\Z", re.DOTALL)
_WORD = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_NAMED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b"}
_WRITTEN = {value[0]: b"\\" + name for name, value in _NAMED.items()} | {0x22: b'\\"', 0x5C: b"\\\\"}


class MonitorError(Exception):
    """MONITOR cannot be had, or a line of it cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One command that the server ran."""

    at_us: int
    """The server's clock when the line was written: before or after the command, as the server has it."""
    db: int
    source: str
    """The client's address; ``lua`` for a command of the script that the last other line called."""
    words: tuple[bytes, ...]

    @property
    def name(self) -> bytes:
        """The command in capitals."""
        return self.words[0].upper()


def parse(line: bytes) -> Entry | None:
    """The entry of a line; None for an empty one, a comment, and the ``OK`` with which MONITOR begins."""
    text = line.strip(b"\r\n")
    if text in (b"", b"OK", b"+OK") or text.startswith(b"#"):
        return None
    found = _LINE.match(text)
    if found is None:
        raise MonitorError(f"no line of MONITOR: {text[:120]!r}")
    seconds, us, db, source, rest = found.groups()
    words = _WORD.findall(rest)
    if b"\\" in rest:
        words = [_ESCAPE.sub(_unescaped, word) if b"\\" in word else word for word in words]
    return Entry(int(seconds) * 1_000_000 + int(us), int(db), source.decode(errors="replace"), tuple(words))


def line(entry: Entry) -> bytes:
    """The line of an entry, as MONITOR writes it."""
    words = b" ".join(b'"' + b"".join(_escaped(byte) for byte in word) + b'"' for word in entry.words)
    seconds, us = divmod(entry.at_us, 1_000_000)
    return b"%d.%06d [%d %s] %s" % (seconds, us, entry.db, entry.source.encode(), words)


def entries(lines: Iterable[bytes]) -> Iterator[Entry]:
    """The entries of a file. Raises MonitorError with the number of the line that is none."""
    for number, each in enumerate(lines, 1):
        try:
            entry = parse(each)
        except MonitorError as error:
            raise MonitorError(f"line {number}: {error}") from None
        if entry is not None:
            yield entry


def _unescaped(match: re.Match[bytes]) -> bytes:
    escape = match[1]
    if len(escape) == 3:
        return bytes([int(escape[1:], 16)])
    return _NAMED.get(escape, escape)


def _escaped(byte: int) -> bytes:
    return _WRITTEN.get(byte) or (bytes([byte]) if 32 <= byte < 127 else b"\\x%02x" % byte)


class Monitor:
    """A connection on which the server tells what it runs. A context manager that closes it."""

    def __init__(self, url: str) -> None:
        """Connects, logs in if the URL says how, and asks for MONITOR. Raises MonitorError."""
        parse: Callable[[str], dict[str, Any]] = parse_url
        options = parse(url)
        try:
            self._socket = self._connected(url, options)
        except OSError as error:
            raise MonitorError(f"cannot connect: {error}. Is the server running, and the URL right?") from error
        self._rest = b""
        try:
            if password := options.get("password"):
                self._command("AUTH", *filter(None, [options.get("username"), password]))
            self._command("MONITOR")
        except (OSError, MonitorError) as error:
            self._socket.close()
            raise MonitorError(str(error)) from error
        self._socket.settimeout(None)

    @staticmethod
    def _connected(url: str, options: dict[str, Any]) -> socket.socket:
        if "path" in options:
            local = socket.socket(socket.AF_UNIX)
            local.settimeout(CONNECT_SECONDS)
            local.connect(options["path"])
            return local
        host, port = options.get("host") or "localhost", int(options.get("port") or 6379)
        plain = socket.create_connection((host, port), CONNECT_SECONDS)
        return ssl.create_default_context().wrap_socket(plain, server_hostname=host) if url[:6] == "rediss" else plain

    def _command(self, *words: str) -> None:
        parts = [word.encode() for word in words]
        self._socket.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        while b"\r\n" not in self._rest:
            data = self._socket.recv(CHUNK)
            if not data:
                raise MonitorError(f"{words[0]}: the server closed the connection")
            self._rest += data
        reply, self._rest = self._rest.split(b"\r\n", 1)
        if reply != b"+OK":
            raise MonitorError(f"{words[0]} was refused: {reply.decode(errors='replace').lstrip('-')}")

    def lines(self) -> Iterator[bytes]:
        """Every line as it comes, without its end, until the connection is closed, from either side."""
        pending = [self._rest]
        while True:
            *whole, rest = b"".join(pending).split(b"\r\n")
            yield from whole
            pending = [rest]
            try:
                data = self._socket.recv(CHUNK)
                while data and b"\n" not in data:  # a part of one long line
                    pending.append(data)
                    data = self._socket.recv(CHUNK)
            except OSError:
                return
            if not data:
                return
            pending.append(data)

    def close(self) -> None:
        """Ends it, also for a thread that waits in ``lines``."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
