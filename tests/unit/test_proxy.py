"""The proxy that holds a client's k-th command up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.support.proxy import SETUP, Proxy, answered, command_name, command_size, delayed, lost, unanswered

GET = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
BINARY = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$6\r\n*1\r\n\r\n\r\n"  # its value looks like a command


@pytest.mark.parametrize("command", [GET, BINARY, b"PING\r\n", b"*1\r\n$0\r\n\r\n"])
def test_where_a_command_ends(command: bytes) -> None:
    """However much follows it; and it is not there before its last byte is."""
    assert command_size(command) == command_size(command + GET) == len(command)
    assert [command_size(command[:length]) for length in range(len(command))] == [0] * len(command)


class Server:
    """Takes one connection, keeps what comes, and answers each byte count with +OK."""

    def __init__(self) -> None:
        self.came = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}/3"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            while data := connection.recv(1 << 16):
                self.came += data
                connection.sendall(b"+OK\r\n" * (data.count(b"GET") + data.count(b"SET")))

    def close(self) -> None:
        """Once the client has gone."""
        self._thread.join(timeout=5)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that keeps what comes."""
    server = Server()
    yield server
    server.close()


def client(proxy: Proxy) -> socket.socket:
    """A connection through the proxy."""
    host, _, port = proxy.url.removeprefix("redis://").removesuffix("/3").partition(":")
    return socket.create_connection((host, int(port)), timeout=5)


def answers(connection: socket.socket, count: int) -> bytes:
    """So many of them."""
    got = b""
    while len(got) < 5 * count:
        got += connection.recv(5 * count - len(got))
    return got


def test_the_kth_command_waits(server: Server) -> None:
    """The action runs when the server has all commands before it and none after, though they came in one packet."""
    seen: list[bytes] = []
    with Proxy(server.url) as proxy, client(proxy) as connection:
        connection.sendall(GET)
        assert answers(connection, 1) == b"+OK\r\n"
        proxy.before(2, lambda: seen.append(server.came))
        connection.sendall(GET)
        assert answers(connection, 1) == b"+OK\r\n"
        connection.sendall(BINARY + GET)
        assert answers(connection, 2) == b"+OK\r\n" * 2
        assert proxy.commands == 3
    assert seen == [GET + GET]
    assert server.came == GET + GET + BINARY + GET


def test_commands_come_in_pieces(server: Server) -> None:
    """A command is passed on when it is whole."""
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.before(2, lambda: None)
        for byte in BINARY:
            connection.sendall(bytes([byte]))
        assert answers(connection, 1) == b"+OK\r\n"
        assert proxy.commands == 1
    assert server.came == BINARY


def test_an_action_that_fails_is_told(server: Server) -> None:
    """The command goes on all the same, and what was raised is there for whoever planned it."""
    error = ValueError("no")

    def fails() -> None:
        raise error

    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.before(1, fails)
        connection.sendall(GET)
        assert answers(connection, 1) == b"+OK\r\n"
        assert proxy.failed is error


def test_a_plan_is_forgotten(server: Server) -> None:
    """What did not happen does not happen later."""
    happened: list[bool] = []
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.before(2, lambda: happened.append(True))
        connection.sendall(GET)
        assert answers(connection, 1) == b"+OK\r\n"
        proxy.forget()
        connection.sendall(GET)
        assert answers(connection, 1) == b"+OK\r\n"
    assert happened == []


@pytest.mark.parametrize(("command", "name"), [(GET, b"GET"), (BINARY, b"SET"), (b"ping\r\n", b"PING")])
def test_the_name_of_a_command(command: bytes, name: bytes) -> None:
    """In capitals, of both forms."""
    assert command_name(command) == name


def test_a_command_is_lost(server: Server) -> None:
    """The connection ends, and the server has seen nothing of the command."""
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.plan(1, lost)
        connection.sendall(GET)
        assert connection.recv(1) == b""
    assert server.came == b""


def test_a_reply_is_lost(server: Server) -> None:
    """The server has the command, and the connection ends before its reply."""
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.plan(1, unanswered)
        connection.sendall(GET)
        assert connection.recv(1) == b""
    assert server.came == GET


def test_an_error_in_the_servers_stead(server: Server) -> None:
    """The client reads the error, the server sees nothing, and the connection goes on."""
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.plan(1, answered(b"BUSY x"))
        connection.sendall(GET)
        assert connection.recv(100) == b"-BUSY x\r\n"
        connection.sendall(BINARY)
        assert answers(connection, 1) == b"+OK\r\n"
    assert server.came == BINARY


def test_a_reply_is_late(server: Server) -> None:
    """The reply comes once it may, and not before."""
    until = threading.Event()
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.plan(1, delayed(until))
        connection.sendall(GET)
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        connection.settimeout(5)
        until.set()
        assert answers(connection, 1) == b"+OK\r\n"


def test_only_some_commands_count(server: Server) -> None:
    """What a client sends for its connection's sake goes through uncounted; what counted is named."""
    with Proxy(server.url) as proxy, client(proxy) as connection:
        proxy.plan(2, answered(b"BUSY x"), lambda name: name not in SETUP)
        connection.sendall(b"PING\r\n" + GET + BINARY)
        got = b""
        while len(got) < len(b"+OK\r\n-BUSY x\r\n"):
            got += connection.recv(100)
        assert not proxy.forget()
        assert proxy.names == [b"GET", b"SET"]
    assert server.came == b"PING\r\n" + GET
