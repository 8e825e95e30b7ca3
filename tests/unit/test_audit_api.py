"""audit as a function: what it reads, what it leaves alone, and what it says of a refusal."""

from __future__ import annotations

from typing import Any

import fakeredis
import pytest
import redis

from redisq import InvalidArgument, RedisTransport
from redisq.ops.audit import audit
from redisq.ops.finding import Severity


@pytest.fixture
def client() -> Any:
    """A client of fakeredis, with a queue p of two groups, one of them under a lease."""
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    queue = RedisTransport(client, "p")
    queue.publish("g", "m")
    queue.publish("h", "m", priority=2)
    queue.claim()
    return client


def refuse(client: Any, word: str) -> None:
    """From now on each command with that word in it is refused."""
    run = client.execute_command

    def execute_command(*args: Any, **options: Any) -> Any:
        if word in args:
            raise redis.ResponseError("NOPERM refused")
        return run(*args, **options)

    client.execute_command = execute_command


def found(report: Any) -> list[tuple[str, str]]:
    """Code and subject of each finding."""
    return [(finding.code, finding.subject) for finding in report.findings]


def test_a_healthy_queue(client: Any) -> None:
    """All keys and entries are read, each group is looked at, and progress ends at what was foreseen."""
    told: list[tuple[int, int]] = []
    report = audit(client, "p", progress=lambda done, total: told.append((done, total)))
    assert (found(report), report.severity, report.others) == ([], Severity.OK, 0)
    assert report.keys == 10  # 2 lists, a lock, prio and 2 tiers; 2 entries and 2 fields
    assert report.groups == 6  # by 2 keys of each page, 2 entries and 2 fields
    assert told[-1] == (10, 10)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_pages() -> None:
    """More than one page of keys, entries and fields is read to the end."""
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    RedisTransport(client, "p").publish_many([(f"g{number}", "m", number % 2) for number in range(350)])
    report = audit(client, "p")
    assert (report.keys, found(report)) == (350 * 3 + 3, [])
    assert report.groups == 350 * 3


def test_progress_needs_no_rights(client: Any) -> None:
    """Where the size of the database is refused, how much is to come is 0, and the audit goes on."""
    refuse(client, "DBSIZE")
    told: list[int] = []
    assert audit(client, "p", progress=lambda _, total: told.append(total)).groups == 6
    assert set(told) == {0}


def test_other_keys(client: Any) -> None:
    """A key set aside, a foreign one and one of a queue that is named alike are told apart; none is touched."""
    others = ["p:aside:1:q:g", "p:ready:5", "p:stats", "p:x:q:g", "p:x:prio", "p:x:ready:0"]
    for key in others:
        client.set(key, "1")
    client.set("pq", "1")
    report = audit(client, "p", repair=True)
    assert sorted(found(report)) == [
        ("foreign-key", "p:ready:5"),
        ("foreign-key", "p:stats"),
        ("set-aside", "p:aside:1:q:g"),
    ]
    assert report.others == 3
    assert report.severity is Severity.WARNING
    assert client.mget(others) == [b"1"] * len(others)


def test_a_prefix_is_no_pattern() -> None:
    """Signs that SCAN reads as a pattern are those of the prefix and nothing else."""
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    RedisTransport(client, "p[a]*").publish("g", "m")
    client.set("pa:stats", "1")
    client.set("p[a]*:stats", "1")
    assert found(audit(client, "p[a]*")) == [("foreign-key", "p[a]*:stats")]


def test_an_index_of_another_type(client: Any) -> None:
    """No group can be looked at, and only that is told; a repair sets it aside and goes on."""
    client.delete("p:prio")
    client.set("p:prio", "1")
    report = audit(client, "p")
    assert found(report) == [("index-type", "p:prio")]
    assert (report.groups, report.severity) == (0, Severity.ERROR)
    report = audit(client, "p", repair=True)
    assert report.severity is Severity.OK
    assert {"index-type", "no-field"} <= {finding.code for finding in report.findings if finding.healed}
    assert client.hgetall("p:prio") == {b"g": b"0", b"h": b"2"}
    assert [code for code, _ in found(audit(client, "p"))] == ["set-aside"]


def test_a_group_that_cannot_be_looked_at(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error about one group is a finding of it; the others are looked at."""
    run = RedisTransport._run_many

    def run_many(self: Any, calls: Any, commands: Any) -> Any:
        outcomes = run(self, calls, commands)
        return [
            redis.ResponseError("NOPERM") if b"h" in call.args and len(call.args) > 3 else outcome
            for call, outcome in zip(calls, outcomes, strict=True)
        ]

    monkeypatch.setattr(RedisTransport, "_run_many", run_many)
    report = audit(client, "p")
    assert found(report) == [("not-examined", "h")]
    assert "ResponseError: NOPERM" in report.findings[0].what


def test_a_refused_script(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the first script is refused nothing can be said, and the client's error is raised."""
    monkeypatch.setattr(RedisTransport, "_run_many", lambda *_: [redis.ResponseError("NOPERM")])
    with pytest.raises(redis.ResponseError, match="NOPERM"):
        audit(client, "p")


@pytest.mark.parametrize("repair", [1, "yes", None])
def test_repair_is_a_bool(client: Any, repair: Any) -> None:
    """What is nearly True does not write."""
    with pytest.raises(InvalidArgument, match="repair"):
        audit(client, "p", repair=repair)


def test_a_client_of_a_cluster(client: Any) -> None:
    """The node that has the keys is asked."""
    asked: list[str] = []

    class Cluster:
        def get_node_from_key(self, key: str) -> str:
            asked.append(key)
            return "node"

        def get_redis_connection(self, node: str) -> Any:
            assert node == "node"
            return client

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

    report = audit(Cluster(), "{p}")
    assert asked == ["{p}:prio"]
    assert found(report) == []
