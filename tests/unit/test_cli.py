"""The command `redisq`: what it prints, and its exit codes."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from typing import Any

import fakeredis
import pytest
import redis

from redisq import RedisTransport, cli
from redisq.ops.finding import Finding, Severity
from tests.support.servers import Server


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fakeredis, which the command reaches by any URL; a queue p with one message."""
    server = fakeredis.FakeServer()
    monkeypatch.setattr(redis.Redis, "from_url", lambda _: fakeredis.FakeRedis(server=server))
    with fakeredis.FakeRedis(server=server) as client:
        RedisTransport(client, "p").publish("g\x1b[2J", "m")
        yield client


URL = "redis://localhost"


def test_audit(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A healthy queue is 0; damage is told with what to do, and 2; a repair heals it, and the next audit is 0."""
    command = ["audit", URL, "--prefix", "p"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out == "audit: 5 keys and entries read; 0 errors, 0 warnings\n"
    client.delete("p:ready:0")
    assert cli.main(command) == 2
    said = capsys.readouterr().out
    assert said.startswith("error    no-entry  g\\x1b[2J: 1 messages, and no entry in a tier\n         no claim")
    assert "1 errors, 0 warnings\nnothing was written" in said
    assert cli.main([*command, "--repair"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("healed   no-entry")
    assert said.endswith("0 errors, 0 warnings, 1 healed\n")
    assert cli.main(command) == 0


def test_json(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json one object is printed, with the severity that is the exit code."""
    client.delete("p:ready:0")
    assert cli.main(["audit", URL, "--prefix", "p", "--json", "--tolerance", "1.5"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert (said["command"], said["prefix"], said["repair"], said["severity"]) == ("audit", "p", False, "error")
    (found,) = said["findings"]
    assert found["code"] == "no-entry"
    assert found["subject"] == "g\x1b[2J"
    assert found["healed"] is False
    code = cli.main(["doctor", URL, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert Severity[said["severity"].upper()] == code
    assert {"server", "scripts", "clock"} <= {found["code"] for found in said["findings"]} | {"server"}


def test_keys_of_others_are_counted(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys of a queue named alike are told with the sum."""
    RedisTransport(client, "p:x").publish("g", "m")
    assert cli.main(["audit", URL, "--prefix", "p"]) == 0
    assert "3 keys of queues whose prefix begins like this one" in capsys.readouterr().out


def test_doctor(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The findings are printed with their sum, and the exit code is the worst severity."""
    code = cli.main(["doctor", URL, "--prefix", "p"])
    said = capsys.readouterr().out
    assert "ok       scripts  EVAL, EVALSHA: scripts run" in said
    assert code == (2 if "\nerror" in f"\n{said}" else 1 if "\nwarning" in f"\n{said}" else 0)


def test_progress_on_a_terminal(
    client: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a terminal an audit shows how far it is."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert cli.main(["audit", URL, "--prefix", "p"]) == 0
    assert "\r5 of about 5 keys and entries\n" in capsys.readouterr().err
    cli._progress(3, 0)
    assert capsys.readouterr().err == "\r3 keys and entries"


@pytest.mark.parametrize("installed", [True, False])
def test_without_rich(
    installed: bool, client: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where rich is not installed the same is printed, without colours."""
    find = importlib.util.find_spec
    monkeypatch.setattr(cli, "find_spec", lambda name: find(name) if installed or name != "rich" else None)
    cli._print([Finding("code", Severity.WARNING, ":lock:", "[red]what[/red]", "why", "", healed=True)])
    assert capsys.readouterr().out == "healed   code  :lock:: [red]what[/red]\n         why\n"


def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """Where nothing answers, the exit code is 3 and the error names the URL."""
    assert cli.main(["doctor", "redis://127.0.0.1:1"]) == cli.FAILED
    assert capsys.readouterr().err.startswith("redisq: redis://127.0.0.1:1: ConnectionError: ")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["doctor", "nonsense"], "redis://"),
        (["audit", "redis://127.0.0.1:1", "--prefix", "p:q"], "prefix must be"),
        (["audit", "redis://127.0.0.1:1", "--prefix", "p", "--tolerance", "-1"], "tolerance must be"),
        (["doctor", "redis://127.0.0.1:1", "--cluster"], "Cluster"),
    ],
)
def test_what_cannot_be_done(command: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong URL or argument is told in a line, and the exit code is 3."""
    assert cli.main(command) == cli.FAILED
    said = capsys.readouterr().err
    assert said.startswith("redisq: ")
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    "command", [[], ["audit", URL], ["heal", URL], ["audit", URL, "--prefix", "p", "--tolerance", "x"]]
)
def test_usage(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command line that is wrong shows the usage, and the exit code is 3, for 2 means that errors were found."""
    with pytest.raises(SystemExit) as ended:
        cli.main(command)
    assert ended.value.code == cli.FAILED
    assert capsys.readouterr().err.startswith("usage: redisq")


def test_without_redis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no client library is installed the command says what to install."""
    monkeypatch.setattr(cli, "find_spec", lambda _: None)
    assert cli.main(["doctor", URL]) == cli.FAILED
    assert "pip install 'redisq-transport[redis,cli]'" in capsys.readouterr().err


def test_passwords_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """An error shows the URL without the password in it."""
    assert cli.main(["doctor", "redis://user:secret@127.0.0.1:1"]) == cli.FAILED
    assert "secret" not in capsys.readouterr().err


def test_on_a_real_server(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands run on a real server, by its URL."""
    with server.client() as client:
        RedisTransport(client, "p").publish("g", "m")
    assert cli.main(["audit", server.url, "--prefix", "p"]) == 0
    assert cli.main(["doctor", server.url, "--prefix", "p"]) < cli.FAILED
    assert "doctor: 0 errors" in capsys.readouterr().out
