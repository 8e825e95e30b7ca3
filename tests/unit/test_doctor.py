"""doctor, for what no server at hand shows: versions, refusals and clients of other kinds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import fakeredis
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redisq.ops import queues, rights
from redisq.ops.doctor import doctor, retries_of
from redisq.ops.finding import Finding, Severity
from tests.support.servers import Server

HEALTHY = {
    "redis_version": "7.0.15",
    "maxmemory_policy": "noeviction",
    "maxmemory": 0,
    "used_memory": 1_000,
    "aof_enabled": 1,
    "role": "master",
    "connected_slaves": 0,
}


class Patient(fakeredis.FakeRedis):
    """A client of fakeredis that tells other things of its server."""

    told: dict[str, Any]
    settings: dict[str, str]

    def info(self, *sections: Any, **options: Any) -> Any:
        return self.told

    def config_get(self, *names: Any, **options: Any) -> Any:
        if not self.settings:
            raise redis.ResponseError("unknown command CONFIG")
        return {name: self.settings[name] for name in names if name in self.settings}


def patient(told: dict[str, Any], settings: dict[str, str] | None = None) -> Patient:
    """A server that is in order but for what is told of it."""
    client = Patient(server=fakeredis.FakeServer(), retry=None)
    client.told = HEALTHY | told
    client.settings = {"appendfsync": "always", "min-replicas-to-write": "1"} if settings is None else settings
    return client


def found(client: Any, code: str, prefix: str | None = "p") -> Finding:
    """The finding with that code."""
    (finding,) = [finding for finding in doctor(client, prefix) if finding.code == code]
    return finding


@pytest.mark.parametrize(
    ("told", "settings", "code", "severity", "words"),
    [
        ({}, None, "server", Severity.OK, "Redis 7.0.15"),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.0"}, None, "server", Severity.OK, "Valkey 9.1.0"),
        ({"redis_version": "6.0.16"}, None, "server", Severity.ERROR, "too old"),
        ({"loading": 1}, None, "loading", Severity.WARNING, "loads"),
        ({"maxmemory_policy": None}, {}, "policy", Severity.WARNING, "not to be seen"),
        ({"maxmemory_policy": None}, {"maxmemory-policy": "noeviction"}, "policy", Severity.OK, "noeviction"),
        ({"maxmemory_policy": "volatile-lru"}, None, "policy", Severity.WARNING, "nothing is evicted yet"),
        ({"maxmemory_policy": "volatile-lru", "maxmemory": 10_000}, None, "policy", Severity.ERROR, "volatile-lru"),
        ({"maxmemory": 1_000}, None, "memory", Severity.WARNING, "100%"),
        ({"aof_enabled": 0}, {}, "persistence", Severity.WARNING, "the AOF is off"),
        ({"aof_enabled": 0}, {"save": ""}, "persistence", Severity.WARNING, "snapshots are off"),
        ({"aof_enabled": 0}, {"save": "900 1"}, "persistence", Severity.WARNING, "snapshots are on"),
        ({"aof_last_write_status": "err"}, None, "persistence", Severity.ERROR, "the last write failed"),
        ({}, {"appendfsync": "no"}, "persistence", Severity.WARNING, "is no"),
        ({}, {}, "persistence", Severity.OK, "not to be seen"),
        ({}, {"appendfsync": "everysec"}, "persistence", Severity.OK, "everysec"),
        ({"role": "slave"}, None, "replication", Severity.ERROR, "replica"),
        ({"connected_slaves": 1}, {}, "replication", Severity.WARNING, "not to be seen"),
        ({"connected_slaves": 1}, {"min-replicas-to-write": "0"}, "replication", Severity.WARNING, "is 0"),
        ({"connected_slaves": 1}, None, "replication", Severity.OK, "is 1"),
        ({"cluster_enabled": 1}, None, "prefix", Severity.ERROR, "hash tag"),
        ({}, None, "rights", Severity.OK, "cannot be asked"),
    ],
)
def test_what_a_server_tells(
    told: dict[str, Any], settings: dict[str, str] | None, code: str, severity: Severity, words: str
) -> None:
    """Each condition gives its finding, of its severity, in words."""
    finding = found(patient(told, settings), code)
    assert finding.severity is severity
    assert words in f"{finding.subject} {finding.what}"
    assert severity is Severity.OK or finding.why


def test_nothing_is_told() -> None:
    """A server that tells nothing of itself is examined all the same."""
    client = patient({}, {})
    client.told = {}
    codes = {finding.code for finding in doctor(client)}
    assert codes == {"policy", "scripts", "rights", "clock", "retries"}


def test_a_prefix_that_the_library_refuses() -> None:
    """The library's words are the finding."""
    assert "'q'" in found(patient({}), "prefix", "p:q").what


def test_a_server_that_does_not_answer() -> None:
    """The client's error is raised, for there is nothing to examine."""
    client = patient({})
    client.ping = lambda **_: _raise(redis.ConnectionError("refused"))  # type: ignore[method-assign]
    with pytest.raises(redis.ConnectionError):
        doctor(client)


def _raise(error: Exception) -> Any:
    raise error


def refusing(*words: str) -> Any:
    """A client whose server refuses commands that hold one of these words."""
    client = patient({})
    run = client.execute_command

    def execute_command(*args: Any, **options: Any) -> Any:
        if any(word in str(part) for part in args for word in words):
            raise redis.ResponseError("NOPERM")
        return run(*args, **options)

    client.execute_command = execute_command  # type: ignore[method-assign]
    return client


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["EVAL"], "scripts"),
        (["EVALSHA"], "scripts"),
        (["('TIME')"], "time"),
        (["SCAN"], "collision"),
    ],
)
def test_what_is_refused(words: list[str], code: str) -> None:
    """What the user may not do is a finding of its own."""
    assert "NOPERM" in found(refusing(*words), code).what


@pytest.mark.parametrize("method", ["info", "time"])
def test_a_refused_question(method: str) -> None:
    """INFO and TIME may be refused, and the rest is still examined."""
    client = patient({})
    setattr(client, method, lambda *_, **__: _raise(redis.ResponseError("NOPERM")))
    assert "NOPERM" in found(client, "clock" if method == "time" else "info").what
    assert found(client, "scripts").severity is Severity.OK


def test_skew() -> None:
    """Clocks that differ are told with the sign of the difference."""
    client = patient({})
    client.time = lambda **_: (0, 0)  # type: ignore[method-assign]
    assert "the server is -" in found(client, "clock").what


def test_rights_on_a_server_that_can_be_asked(server: Server) -> None:
    """The default user of a server may run every command of the scripts; one who lacks some is told which."""
    with server.client() as client:
        assert [finding.severity for finding in rights.check(client, "p")] == [Severity.OK] * 2
        client.execute_command("ACL", "SETUSER", "poor", "reset", "on", ">x", "+@all", "-lpop", "~p:*")
    with server.client(username="poor", password="x") as poor:
        found = list(rights.check(poor, "p"))
    assert [finding.subject for finding in found if finding.severity] == ["ack"]


def test_rights_that_cannot_be_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the question itself is told."""
    monkeypatch.setattr(rights, "ASK", b"return redis.error_reply('no')")
    with server.client() as client:
        assert "could not be asked" in list(rights.check(client, "p"))[-1].what


def test_a_database_too_large_to_be_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collisions are looked for among so many keys, and the finding says so if there are more."""
    monkeypatch.setattr(queues, "MOST", 100)
    monkeypatch.setattr(queues, "COUNT", 10)
    client = patient({})
    for number in range(1_000):
        client.set(f"k{number}", "x")
    assert "only the first 100 keys" in found(client, "collision").what


def test_collisions() -> None:
    """A queue inside another one's keys is told once."""
    client = patient({})
    for prefix in ("p", "p:q:x", "p:other"):
        client.hset(f"{prefix}:prio", "g", "0")
    assert "'p' and 'p:q:x'" in found(client, "collision", None).what
    assert "'p' and 'p:q:x'" in found(client, "collision").what
    assert not [finding for finding in doctor(client, "p:other") if finding.code == "collision"]


def _pool(**options: Any) -> Any:
    return SimpleNamespace(connection_pool=SimpleNamespace(connection_kwargs=options))


@pytest.mark.parametrize(
    ("client", "retries"),
    [
        (_pool(), 0),
        (_pool(retry_on_timeout=True), 1),
        (_pool(retry=Retry(NoBackoff(), 3)), 3),
        (_pool(retry=object()), None),
        (SimpleNamespace(retry=Retry(NoBackoff(), 2)), 2),
        (SimpleNamespace(), None),
    ],
)
def test_retries_of(client: Any, retries: int | None) -> None:
    """How often a client repeats a call is read from its pool, or from the client of a cluster."""
    assert retries_of(client) == retries


@pytest.mark.parametrize(
    ("retries", "words"), [(3, "retries 3 times"), (None, "not to be seen"), (0, "does not retry")]
)
def test_retries(retries: int | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that repeats calls by itself, or may do so, is told."""
    monkeypatch.setattr("redisq.ops.doctor.retries_of", lambda _: retries)
    assert words in found(patient({}), "retries").what
