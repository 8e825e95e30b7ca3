"""``redisq-conformance replay``: attached to a real server in use, and from a record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from redisq import RedisTransport, conformance
from tests.support.replay import attach
from tests.support.replay.cli import main
from tests.support.running import BaseServer
from tests.support.servers import discover

SECONDS = "1.0"


@pytest.fixture
def server() -> Iterator[BaseServer]:
    """A server by the machine's own clock."""
    source = next(iter(discover()), None)
    if source is None:
        pytest.skip("no server was found")
    with source.start() as server, server.clock.released():  # type: ignore[attr-defined]
        yield server


@pytest.fixture
def at_work(server: BaseServer) -> Iterator[Callable[[Callable[[], object]], None]]:
    """A worker that works all the time; once the watch has begun, something is done beside it."""
    stop, beside = threading.Event(), []

    def work() -> None:
        with server.client() as client:
            queue = RedisTransport(client, prefix="app")
            number = 0
            while not stop.is_set():
                number += 1
                queue.publish(b"g\0%d" % (number % 7), b"m%d" % number, priority=number % 5)
                if number % 3 and (lease := queue.claim(0.05)) is not None and number % 5:
                    queue.ack(lease)
                stop.wait(0.002)

    worker = threading.Thread(target=work)
    worker.start()

    def later(action: Callable[[], object]) -> None:
        beside.append(threading.Timer(0.7, action))
        beside[-1].start()

    yield later
    stop.set()
    worker.join()
    for timer in beside:
        timer.join()


Later = Callable[[Callable[[], object]], None]


def test_a_queue_in_use(server: BaseServer, at_work: Later, capsys: pytest.CaptureFixture[str]) -> None:
    """Attached to a queue that is in use, every step of the library is possible."""
    assert main([server.url, "--prefix", "app", "--seconds", SECONDS]) == 0, capsys.readouterr()
    said = capsys.readouterr().out
    assert "POSSIBLE: every step" in said
    assert "not understood" not in said


def test_a_lock_that_somebody_deletes(
    server: BaseServer, at_work: Later, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The first step that cannot be ends it, with its trace; the record shows the same again."""

    def delete() -> None:
        with server.client() as client:
            while not (locks := client.keys("app:lock:*")):
                pass
            client.delete(*locks)

    at_work(delete)
    record = tmp_path / "record"
    assert main([server.url, "--prefix", "app", "--seconds", "20", "--record", str(record)]) == 1
    said = capsys.readouterr().out
    assert "DEL lock:g\\x00" in said
    assert "> # " in said
    assert said.endswith("IMPOSSIBLE\n")
    assert main(["--from", str(record), "--prefix", "app"]) == 1
    assert "DEL lock:g\\x00" in capsys.readouterr().out


def test_nothing_is_changed(server: BaseServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Attaching changes no key; and where nothing was done nothing was shown, which is no success."""
    with server.client() as client:
        RedisTransport(client, prefix="app").publish("g", "m")
        client.set("app:lock:odd", "a lock without an end")
        client.rpush("app:lock:list", "a lock of another type")
        client.set("app:q:string", "a list of another type")
        before = [(key, client.dump(key), client.pttl(key)) for key in sorted(client.keys())]
        assert main([server.url, "--prefix", "app", "--seconds", "0.3"]) == 1
        assert 'UNKNOWN: nothing was done to a queue of the prefix "app"' in capsys.readouterr().out
        assert [(key, client.dump(key), client.pttl(key)) for key in sorted(client.keys())] == before


def test_a_record_begins_with_the_key_space(server: BaseServer, tmp_path: Path) -> None:
    """A record can be replayed by itself, also one of a queue that was not empty."""
    record = tmp_path / "record"
    with server.client() as client:
        queue = RedisTransport(client, prefix="app")
        for number in range(3):
            queue.publish("g", f"{number}", priority=3)
        lease = queue.claim(60)
        assert lease is not None
        threading.Timer(0.4, lambda: queue.ack(lease)).start()
        assert main([server.url, "--prefix", "app", "--seconds", SECONDS, "--record", str(record)]) == 0
    assert b"[0 snapshot]" in record.read_bytes()
    assert main(["--from", str(record), "--prefix", "app"]) == 0
    assert main(["--from", str(record), "--prefix", "another"]) == 1


def test_cannot_keep_up(server: BaseServer, at_work: Later, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more lines wait than may, it lets go of the server, and says so: it is no success."""
    monkeypatch.setattr(attach, "MOST_WAITING", 5)
    assert main([server.url, "--prefix", "app", "--seconds", "5"]) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (["--prefix", "p"], "either a URL or --from FILE"),
        (["redis://localhost", "--from", "f", "--prefix", "p"], "either a URL or --from FILE"),
        (["redis://localhost", "--prefix", ""], "--prefix: not empty"),
        (["--from", "/no/such/file", "--prefix", "p"], "/no/such/file"),
        (["http://localhost", "--prefix", "p"], "Redis URL"),
        (["redis://localhost", "--prefix", "p", "--lua", "/no/such"], "/no/such"),
    ],
)
def test_wrong_command_line(line: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with the command line is said, and nothing is watched."""
    assert main(line) == 2
    assert why in capsys.readouterr().err


def test_no_server(capsys: pytest.CaptureFixture[str]) -> None:
    """A server that is not there is named as the cause."""
    assert main(["redis://127.0.0.1:1", "--prefix", "p"]) == 1
    assert "cannot connect" in capsys.readouterr().err


def test_refused(server: BaseServer, capsys: pytest.CaptureFixture[str]) -> None:
    """A user without the right to MONITOR is told so."""
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "reader", "reset", "on", ">secret", "+@read", "~*")
    url = server.url.replace("redis://", "redis://reader:secret@")
    assert main([url, "--prefix", "p"]) == 1
    assert "MONITOR was refused: NOPERM" in capsys.readouterr().err


def test_by_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The launcher hands ``replay`` on, and needs no more than a client library for it."""
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    (record := tmp_path / "record").write_bytes(b'1.000000 [0 c:1] "LPOP" "p:q:g"\nnot a line\n')
    assert conformance.main(["replay", "--from", str(record), "--prefix", "p"]) == 1
    assert "line 2: no line of MONITOR" in capsys.readouterr().err
    monkeypatch.setattr(conformance, "REPLAY_NEEDED", ("no_such_package",))
    assert conformance.main(["replay", "--from", str(record), "--prefix", "p"]) == 2
    assert "no_such_package not installed" in capsys.readouterr().err
    assert redis.__version__
