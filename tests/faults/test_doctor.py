"""doctor on real servers: each condition is named by its finding, and a server in order has none."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from redisq import RedisTransport
from redisq.ops.doctor import doctor
from redisq.ops.finding import Finding, Severity
from tests.faults.topology import another
from tests.support.running import BaseServer


def troubles(findings: list[Finding]) -> set[str]:
    """What is more than good to know; neither the persistence nor the clock of a test's server counts."""
    expected = {"persistence", "clock"}
    return {finding.code for finding in findings if finding.severity} - expected


@contextmanager
def settings(client: Any, **values: object) -> Iterator[None]:
    """CONFIG SET for a while; the test is skipped where that is refused."""
    names = {name.replace("_", "-"): value for name, value in values.items()}
    try:
        before = {name: client.config_get(name)[name] for name in names}
        for name, value in names.items():
            client.config_set(name, value)
    except redis.ResponseError as error:
        pytest.skip(f"CONFIG is refused: {error}")
    try:
        yield
    finally:
        for name, value in before.items():
            client.config_set(name, value)


@contextmanager
def user(server: BaseServer, *rules: str) -> Iterator[Any]:
    """A client with the rights of `rules`; the test is skipped where no user can be made."""
    admin: Any = server.client()
    try:
        admin.execute_command("ACL", "SETUSER", "patient", "reset", "on", ">secret", *rules)
    except redis.ResponseError as error:
        pytest.skip(f"{server.name}: users cannot be made here: {error}")
    try:
        yield server.client(username="patient", password="secret")
    finally:
        admin.execute_command("ACL", "DELUSER", "patient")


def test_a_server_in_order(server: BaseServer) -> None:
    """An ordinary server has no finding but its persistence, and the database is left as it was."""
    client: Any = server.client()
    RedisTransport(client, "p").publish("g", "m")
    before = {key: client.dump(key) for key in client.scan_iter()}
    assert troubles(doctor(client, "p")) == set()
    assert {key: client.dump(key) for key in client.scan_iter()} == before


def test_policies(server: BaseServer) -> None:
    """Another policy than noeviction is a warning while there is no limit, and an error with one."""
    client: Any = server.client()
    with settings(client, maxmemory_policy="allkeys-lru"):
        assert severity(doctor(client), "policy") is Severity.WARNING
        with settings(client, maxmemory="10gb"):
            assert severity(doctor(client), "policy") is Severity.ERROR
    assert severity(doctor(client), "policy") is Severity.OK


def severity(findings: list[Finding], code: str) -> Severity:
    """Of the findings with that code, the worst."""
    return max(finding.severity for finding in findings if finding.code == code)


def test_a_full_server(server: BaseServer) -> None:
    """A server that is nearly full is told before it refuses publishes."""
    client: Any = server.client()
    used = int(client.info("memory")["used_memory"])
    with settings(client, maxmemory=used * 100):
        assert "memory" not in troubles(doctor(client))
    with settings(client, maxmemory=used):
        assert "memory" in troubles(doctor(client))


def test_persistence(server: BaseServer) -> None:
    """No AOF is a warning, appendfsync no as well; everysec and always are in order."""
    with another(server, "--appendonly", "yes") as durable:
        client: Any = durable.client()
        for fsync, expected in (("everysec", Severity.OK), ("always", Severity.OK), ("no", Severity.WARNING)):
            client.config_set("appendfsync", fsync)
            assert severity(doctor(client), "persistence") is expected
        client.config_set("appendonly", "no")
        assert severity(doctor(client), "persistence") is Severity.WARNING


def test_replication(server: BaseServer, replica: BaseServer) -> None:
    """A replica is an error; a primary with one and min-replicas-to-write 0 is a warning."""
    client: Any = server.client()
    assert severity(doctor(replica.client()), "replication") is Severity.ERROR
    assert severity(doctor(client), "replication") is Severity.WARNING
    with settings(client, min_replicas_to_write=1):
        assert severity(doctor(client), "replication") is Severity.OK


def test_a_user_who_may_ask_nothing(server: BaseServer) -> None:
    """Where INFO, CONFIG, TIME and SCAN are refused the examination goes on, and says what could not be seen."""
    with user(server, "+@all", "-info", "-config", "-time", "-scan", "~*") as client:
        findings = doctor(client, "p")
    # TIME is refused inside scripts too; which commands are, Redis 6.2 cannot be asked.
    assert troubles(findings) - {"rights"} == {"info", "policy", "collision", "time"}
    assert {finding.code for finding in findings} >= {"clock", "scripts", "retries"}


@pytest.mark.parametrize("command", ["eval", "evalsha"])
def test_no_scripts(server: BaseServer, command: str) -> None:
    """A user who may not run scripts can use no queue."""
    with user(server, "+@all", f"-{command}", "~*") as client:
        assert severity(doctor(client), "scripts") is Severity.ERROR


def test_lacking_rights(server: BaseServer) -> None:
    """The commands that a user lacks are told by script, and so is a prefix that the user may not use."""
    with user(server, "+@all", "-zadd", "~p:*") as client:
        found = [finding for finding in doctor(client, "p") if finding.code == "rights"]
        far = [finding for finding in doctor(client, "other") if finding.code == "rights"]
    if "cannot be asked" in found[0].what:
        assert server.name == "redis-6.2"
        return
    assert [finding.subject for finding in found] == ["publish", "claim", "ack", "nack", "extend"]
    assert all("ZADD" in finding.what for finding in found)
    assert all(len(finding.what.split(",")) > 3 for finding in far if finding.severity)


def test_skew(server: BaseServer) -> None:
    """A server whose clock differs from this machine's by more than a second is told, with its sign."""
    if not server.clock.exact:
        pytest.skip(f"{server.name}: its clock cannot be set: {server.clock.reason}")
    now_ms = time.time_ns() // 1_000_000
    for ahead_ms, expected in ((0, "agree"), (3_600_000, "+36"), (-3_600_000, "-36")):
        server.clock.set_ms(now_ms + ahead_ms, touch=())
        (found,) = [finding for finding in doctor(server.client()) if finding.code == "clock"]
        assert expected in found.what


def test_a_cluster_needs_a_hash_tag(server: BaseServer) -> None:
    """On a node of a cluster a prefix without a hash tag is an error."""
    with another(server, "--cluster-enabled", "yes") as node:
        assert severity(doctor(node.client(), "orders"), "prefix") is Severity.ERROR
        assert "prefix" not in {finding.code for finding in doctor(node.client(), "{orders}")}


def test_collisions(server: BaseServer) -> None:
    """Two queues that share keys are told, of the whole database or of one prefix; others are not."""
    client: Any = server.client()
    for prefix in (b"p", b"p:x", b"app", b"app:lock:y"):
        client.hset(prefix + b":prio", "g", "0")
    told = [finding for finding in doctor(client) if finding.code == "collision"]
    assert [finding.what for finding in told] == ["there are queues under 'app' and 'app:lock:y'"]
    assert "collision" in troubles(doctor(client, "app"))
    assert "collision" not in troubles(doctor(client, "p"))
    client.hset("p:q:prio", "g", "0")
    assert "collision" in troubles(doctor(client, "p"))


def test_retries(server: BaseServer) -> None:
    """A client that repeats calls by itself is a warning, and one that does not is none."""
    assert "retries" not in troubles(doctor(server.client()))
    with redis.Redis(port=server.port, retry=Retry(NoBackoff(), 3)) as client:
        assert "retries" in troubles(doctor(client))
