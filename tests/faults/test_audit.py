"""audit on real servers: each kind of damage is told and healed, on a queue that is busy, full or huge."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import redis

from redisq import InvalidArgument, RedisTransport
from redisq.ops.audit import Report, audit
from redisq.ops.finding import Severity
from redisq.ops.kinds import KINDS
from redisq.scripts import Script
from tests.faults.busy import PREFIX, busy
from tests.support.running import BaseServer

Damage = Callable[[Any], Any]
FAR = 10**14
DAMAGES: dict[str, tuple[str, Damage]] = {
    "an entry is lost": ("no-entry", lambda c: c.zrem("p:ready:1", "b")),
    "all entries are lost": ("no-entry", lambda c: c.delete("p:ready:0", "p:ready:1", "p:ready:2")),
    "a leased entry is lost": ("no-entry", lambda c: c.zrem("p:ready:0", "a")),
    "a list is lost": ("stale-entry", lambda c: c.delete("p:q:b")),
    "an entry of nothing": ("stale-entry", lambda c: c.zadd("p:ready:4", {"nothing": 5})),
    "two tiers": ("two-tiers", lambda c: c.zadd("p:ready:4", {"b": 5})),
    "another tier": ("wrong-tier", lambda c: c.hset("p:prio", "b", "3")),
    "a field is lost": ("no-field", lambda c: c.hdel("p:prio", "b")),
    "all fields are lost": ("no-field", lambda c: c.delete("p:prio")),
    "a field is spoilt": ("no-field", lambda c: c.hset("p:prio", "b", "2.5")),
    "a field alone": ("lone-field", lambda c: c.hset("p:prio", "nothing", "2")),
    "a lock that never ends": ("lock-without-ttl", lambda c: c.persist("p:lock:a")),
    "a lock of nothing": ("lock-without-ttl", lambda c: c.set("p:lock:nothing", "x")),
    "a score far ahead": ("score-ahead", lambda c: c.zadd("p:ready:1", {"b": FAR})),
    "an infinite score": ("score-ahead", lambda c: c.zadd("p:ready:1", {"b": "inf"})),
    "a list of another type": ("list-type", lambda c: (c.delete("p:q:b"), c.set("p:q:b", "x"))),
    "a lock of another type": ("lock-type", lambda c: c.rpush("p:lock:b", "x")),
    "a list that ends": ("list-with-ttl", lambda c: c.expire("p:q:b", 1000)),
    "a tier of another type": ("index-type", lambda c: (c.delete("p:ready:1"), c.set("p:ready:1", "x"))),
    "fields of another type": ("index-type", lambda c: (c.delete("p:prio"), c.rpush("p:prio", "x"))),
    "a tier that ends": ("index-with-ttl", lambda c: c.expire("p:ready:1", 1000)),
}
LEFT_ALONE: dict[str, tuple[str, Damage]] = {
    "a key of somebody": ("foreign-key", lambda c: c.set("p:something", "x")),
    "a tier that no claim reads": ("foreign-key", lambda c: c.zadd("p:ready:5", {"b": 0})),
    "a list without a group": ("foreign-key", lambda c: c.rpush("p:q:", "x")),
    "a queue inside": ("collision", lambda c: (c.hset("p:q:prio", "y", "0"), c.rpush("p:q:q:y", "m"))),
    "a queue inside locks": ("collision", lambda c: (c.hset("p:lock:prio", "y", "0"), c.set("p:lock:lock:y", "t"))),
}


def prepared(server: BaseServer) -> tuple[Any, RedisTransport]:
    """Three groups of two messages: a is leased, c is parked."""
    client: Any = server.client()
    queue = RedisTransport(client, "p")
    for tier, group in enumerate("abc"):
        queue.publish(group, f"{group}1", tier)
        queue.publish(group, f"{group}2", tier)
    queue.claim(30.0)
    queue.claim(30.0, 1)
    for lease in (queue.claim(30.0, 2),):
        assert lease is not None
        queue.nack(lease, 20.0)
    client.zadd("p:ready:1", {"b": 0})
    client.delete("p:lock:b")
    return client, queue


def codes(report: Report) -> set[str]:
    """What was found and not healed; not what is only good to know."""
    return {finding.code for finding in report.findings if finding.severity and not finding.healed}


def drained(server: BaseServer, queue: RedisTransport) -> list[str]:
    """What is delivered once every lease and park has ended."""
    server.clock.advance(60_000)
    got = []
    while lease := queue.claim():
        got.append(lease.text)
        assert queue.ack(lease)
    return got


@pytest.mark.parametrize("name", DAMAGES)
def test_damage(server: BaseServer, name: str) -> None:
    """An audit names the damage and writes nothing; a repair heals it, and every message that is left is delivered."""
    client, queue = prepared(server)
    assert audit(client, "p").findings == []
    code, damage = DAMAGES[name]
    damage(client)
    before = snapshot(client)
    assert code in codes(audit(client, "p"))
    assert snapshot(client) == before
    healed = audit(client, "p", repair=True)
    assert code in {finding.code for finding in healed.findings if finding.healed}
    assert codes(healed) == codes(audit(client, "p")) == set()
    if name == "a list of another type":
        assert [client.get(key) for key in client.keys("p:aside:*")] == [b"x"]
    lost = "b" if name in ("a list is lost", "a list of another type") else ""
    assert sorted(drained(server, queue)) == [f"{group}{n}" for group in "abc" if group != lost for n in "12"]
    assert {key for key in client.scan_iter() if not key.startswith(b"p:aside:")} == set()


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_not_ours(server: BaseServer, name: str) -> None:
    """Keys of others are told, and a repair leaves them as they are."""
    client, _ = prepared(server)
    code, damage = LEFT_ALONE[name]
    damage(client)
    before = snapshot(client)
    assert codes(audit(client, "p", repair=True)) == {code}
    assert snapshot(client) == before


def snapshot(client: Any) -> dict[bytes, object]:
    """Every key with all it holds."""
    return {key: (client.dump(key), client.pttl(key) >= 0) for key in client.scan_iter()}


def test_every_kind_is_shown() -> None:
    """Each kind of finding is brought about by some damage here."""
    shown = {code for code, _ in (*DAMAGES.values(), *LEFT_ALONE.values())}
    assert set(KINDS) - shown == {"set-aside", "not-examined"}  # by the two tests that follow


def test_what_was_set_aside_is_told(server: BaseServer) -> None:
    """A key of a wrong type is renamed and kept, and later audits say that it is there."""
    client, _ = prepared(server)
    client.delete("p:q:b")
    client.set("p:q:b", "precious")
    audit(client, "p", repair=True)
    (aside,) = client.keys("p:aside:*")
    assert client.get(aside) == b"precious"
    (found,) = audit(client, "p").findings
    assert (found.code, found.subject, found.severity) == ("set-aside", aside.decode(), Severity.OK)


def test_a_group_that_may_not_be_looked_at(server: BaseServer) -> None:
    """Where a user may not see a group that is a finding, and the rest of the audit goes on."""
    client, _ = prepared(server)
    try:
        client.execute_command(
            "ACL", "SETUSER", "half", "reset", "on", ">x", "+@all", "~p:prio", "~p:ready:*", "~p:*:a"
        )
    except redis.ResponseError as error:
        pytest.skip(f"{server.name}: users cannot be made here: {error}")
    try:
        report = audit(server.client(username="half", password="x"), "p")
    finally:
        client.execute_command("ACL", "DELUSER", "half")
    assert {(finding.code, finding.subject) for finding in report.findings} == {
        ("not-examined", "b"),
        ("not-examined", "c"),
    }


def test_a_full_server(server: BaseServer) -> None:
    """A group without an entry is repaired on a server at maxmemory, so that it can be drained."""
    client, queue = prepared(server)
    client.zrem("p:ready:1", "b")
    try:
        client.config_set("maxmemory", 1)
    except redis.ResponseError as error:
        pytest.skip(f"{server.name}: maxmemory cannot be set here: {error}")
    try:
        audit(client, "p", repair=True)
        assert queue.claim(min_priority=1) is not None
    finally:
        client.config_set("maxmemory", 0)


def test_any_prefix_and_group(server: BaseServer) -> None:
    """Names with every byte, and a prefix with the signs of a pattern, are read as they are."""
    client: Any = server.client()
    other = RedisTransport(client, "aXb-c")
    other.publish("g", "m")
    queue = RedisTransport(client, "a*b[-]c\\d?^")
    group = bytes(range(256))
    queue.publish(group, "m")
    client.zrem("a*b[-]c\\d?^:ready:0", group)
    report = audit(client, "a*b[-]c\\d?^", repair=True)
    assert [(finding.code, finding.subject) for finding in report.findings] == [
        ("no-entry", group.decode("utf-8", "surrogateescape"))
    ]
    assert report.others == 0


def test_queues_named_alike(server: BaseServer) -> None:
    """Keys of a queue whose prefix begins like this one are counted, and are no finding."""
    client, _ = prepared(server)
    RedisTransport(client, "p:x").publish("g", "m")
    report = audit(client, "p")
    assert report.findings == []
    assert report.others == 3


def test_a_large_queue_is_paged(server: BaseServer) -> None:
    """No command of an audit reads more than a page, and progress is told up to the end."""
    client: Any = server.client()
    queue = RedisTransport(client, "p")
    queue.publish_many((f"g{number}", "m", number % 5) for number in range(3_000))
    client.zrem("p:ready:3", "g3")
    client.config_set("slowlog-log-slower-than", 0)
    client.config_set("slowlog-max-len", 100_000)
    client.slowlog_reset()
    told: list[tuple[int, int]] = []
    report = audit(client, "p", progress=lambda done, total: told.append((done, total)))
    client.config_set("slowlog-log-slower-than", -1)
    assert [finding.code for finding in report.findings] == ["no-entry"]
    assert told[-1] == (report.keys, told[0][1])
    assert report.keys >= 9_000
    assert max(done - before for (before, _), (done, _) in pairwise(told)) < 1_000
    names = {entry["command"].split()[0] for entry in client.slowlog_get(100_000)}
    assert not names & {b"KEYS", b"HGETALL", b"LRANGE", b"ZRANGE", b"SMEMBERS"}


@pytest.mark.parametrize(
    "arguments", [{"tolerance": -1.0}, {"tolerance": "1"}, {"repair": 1}, {"prefix": "p:q"}, {"prefix": ""}], ids=str
)
def test_bad_arguments(server: BaseServer, arguments: dict[str, Any]) -> None:
    """What is not of its form is refused before anything is read or written."""
    with pytest.raises(InvalidArgument):
        audit(server.client(), **{"prefix": "p", **arguments})


def test_a_healthy_busy_queue(server: BaseServer) -> None:
    """Audits and repairs of a queue in full use find nothing and disturb nobody."""
    client: Any = server.client()
    audits = 0
    with busy(server.url) as (published, account):
        while not published.is_set() or audits < 3:
            report = audit(client, PREFIX, repair=audits % 2 == 1)
            assert report.findings == []
            audits += 1
    assert account.wrong() == []
    assert client.keys() == []


SPOILS: list[Damage] = [
    lambda c: c.zrem(f"{PREFIX}:ready:{DICE.randrange(5)}", _group(c)),
    lambda c: c.hdel(f"{PREFIX}:prio", _group(c)),
    lambda c: c.hset(f"{PREFIX}:prio", _group(c), DICE.choice(["3", "7", "x"])),
    lambda c: c.zadd(f"{PREFIX}:ready:{DICE.randrange(5)}", {_group(c): FAR}),
    lambda c: c.persist(f"{PREFIX}:lock:{_group(c)}"),
]
DICE = Random(7)


def _group(client: Any) -> str:
    """One that is leased, if any is."""
    leased = [key.decode().rpartition(":")[2] for key in client.keys(f"{PREFIX}:lock:*")]
    return DICE.choice(leased or [f"p{DICE.randrange(2)}-{DICE.randrange(12)}"])


def spoilt_and_repaired(server: BaseServer) -> list[str]:
    """A busy queue that is damaged again and again and repaired each time; what is wrong in the end."""
    client: Any = server.client()
    damage = 0
    with busy(server.url) as (published, account):
        while not published.is_set() or damage < 60:
            DICE.choice(SPOILS)(client)
            damage += 1
            audit(client, PREFIX, repair=True)
        audit(client, PREFIX, repair=True)
    left = [key.decode() for key in client.scan_iter()]
    return account.wrong() + [f"left: {left}"] * bool(left)


def test_a_busy_queue_is_repaired(server: BaseServer) -> None:
    """Damage and repair in full use: nothing is lost, the order is kept, and no lease is taken away."""
    assert spoilt_and_repaired(server) == []


def wrong(old: str, new: str, folder: Path) -> Script:
    """The script of the audit with one change."""
    source = (files("redisq") / "ops" / "audit.lua").read_text(encoding="utf-8")
    assert source.count(old) == 1
    (folder / "audit.lua").write_text(source.replace(old, new), encoding="utf-8")
    return Script.read(folder, "audit")


def test_a_repair_that_ends_leases_is_found_out(
    server: BaseServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a busy queue a repair that deletes the lock of a group shows as settlements that are refused."""
    deletes = wrong("redis.call('GETEX', lock) --", "redis.call('DEL', lock) --", tmp_path)
    monkeypatch.setattr("redisq.ops.audit._GROUP", deletes)
    assert "refused" in " ".join(spoilt_and_repaired(server))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("an entry is lost", "  redis.call('ZADD', prefix .. ':ready:' .. tier, score, group)\n", ""),
        ("two tiers", "redis.call('ZREM', prefix .. ':ready:' .. t, group)", "ttl = ttl"),
        ("a lock that never ends", "    redis.call('PEXPIRE', lock, string.format('%.0f', left))\n", ""),
        ("a list that ends", "  redis.call('PERSIST', q)\n", ""),
        ("a list of another type", "  aside(q)\n", "  redis.call('DEL', q)\n"),
        ("an infinite score", "if ahead or not score then", "if not score then"),
    ],
)
def test_a_wrong_repair_is_found_out(
    server: BaseServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, old: str, new: str
) -> None:
    """A repair that leaves out one thing fails the test of the damage that needs it."""
    monkeypatch.setattr("redisq.ops.audit._GROUP", wrong(old, new, tmp_path))
    with pytest.raises(AssertionError):
        test_damage(server, name)
