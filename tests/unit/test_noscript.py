"""NOSCRIPT: whatever happens to the server's script cache, each operation takes effect exactly once."""

from __future__ import annotations

from typing import Any

import fakeredis
import pytest
import redis

from redisq import batch
from redisq.keys import Keys
from redisq.scripts import SCRIPTS
from tests.unit.queues import MESSAGES, Bench, needs, news

KEYS = Keys(b"redisq")


@pytest.fixture(params=["fakeredis", "server"])
def client(request: pytest.FixtureRequest, bench: Bench) -> Any:
    """A client of each kind, on fakeredis and on a real server, with an empty script cache."""
    if request.param == "fakeredis":
        return bench.fake()
    return bench.real(request.getfixturevalue("server").url)


def test_every_operation_survives_a_flush(bench: Bench, client: Any) -> None:
    """FAIL-8: with an empty cache before each of them, all operations do what they do, once."""
    queue, commands = bench.queue(client), bench.blocking(client)

    def flushed(name: str, *args: Any, **options: Any) -> Any:
        commands.script_flush()
        return getattr(queue, name)(*args, **options)

    assert flushed("publish", "g", "1") == 1
    assert flushed("publish", "g", "2") == 2
    lease = flushed("claim")
    assert lease.payload == b"1"
    assert flushed("claim") is None
    assert flushed("extend", lease, 60) is not None
    assert flushed("nack", lease) is True
    lease = flushed("claim")
    assert flushed("ack", lease) is True
    assert flushed("ack", lease) is False
    lease = flushed("claim")
    assert lease.payload == b"2"
    assert flushed("publish_many", [("h", "3"), ("h", "4"), ("g", "5")]) == [1, 2, 2]
    acked, other = flushed("ack_and_claim", lease)
    assert (acked, other.payload) == (True, b"3")
    (last,) = flushed("claim_many", 3)
    assert last.payload == b"5"
    assert flushed("ack", last)
    assert flushed("ack", other)
    assert set(commands.keys("*")) == {KEYS.q("h"), KEYS.ready(0), KEYS.prio}


def test_a_repair_loads_the_script(bench: Bench, client: Any) -> None:
    """After one repair the cache knows the script, under the SHA that is called next."""
    queue, commands = bench.queue(client), bench.blocking(client)
    commands.script_flush()
    lease = (queue.publish("g", "p"), queue.claim())[1]
    queue.extend(lease)
    queue.nack(lease)
    queue.ack(lease)
    assert commands.script_exists(*(script.sha for script in SCRIPTS.values())) == [True] * 5


def test_an_acl_without_script_load_is_enough(bench: Bench, server: Any) -> None:
    """A user who may not run SCRIPT LOAD can use an empty cache: EVAL brings the script along."""
    with server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">secret", "~*", "+@all", "-script")
        try:
            queue = bench.queue(bench.real(server.url, username="worker", password="secret"))
            assert queue.publish_many([("a", "1"), ("b", "2")]) == [1, 1]
            assert [lease.payload for lease in queue.claim_many(3)] == [b"1", b"2"]
        finally:
            admin.execute_command("ACL", "DELUSER", "worker")


class NoScriptError(Exception):
    """The class of any client library."""


class Sub(NoScriptError):
    """A class under it."""


@pytest.mark.parametrize(
    "error",
    [
        redis.exceptions.NoScriptError("No matching script. Please use EVAL."),
        redis.exceptions.ResponseError("NOSCRIPT No matching script."),
        NoScriptError("any words"),
        Sub(),
        RuntimeError("NOSCRIPT"),
    ],
)
def test_noscript_is_known_by_class_or_code(bench: Bench, error: Exception) -> None:
    """Every client's way to say NOSCRIPT leads to the whole script, by one EVAL with the same arguments."""
    calls: list[tuple[Any, ...]] = []

    def execute(client: Any, *args: Any, **options: Any) -> Any:
        calls.append(args)
        if args[0] == "EVALSHA":
            raise error
        return client.execute_command(*args, **options)

    queue = bench.queue(bench.wrap(fakeredis.FakeRedis(server=fakeredis.FakeServer()), execute))
    assert queue.publish("g", "p") == 1
    assert [args[0] for args in calls] == ["EVALSHA", "EVAL"]
    assert calls[0][2:] == calls[1][2:]
    assert batch.is_noscript(error)
    assert batch.is_refusal(error)


@pytest.mark.parametrize(
    "error",
    [
        redis.exceptions.ResponseError("ERR No matching script. Please use EVAL."),
        redis.exceptions.ResponseError("NOSCRIPTS"),
        redis.exceptions.ResponseError("ERR NOSCRIPT"),
        RuntimeError(""),
    ],
)
def test_no_other_error_repeats_a_call(bench: Bench, error: Exception) -> None:
    """Words that merely resemble the code lead to no second call."""
    calls: list[Any] = []

    def execute(_: Any, *args: Any, **options: Any) -> Any:
        calls.append(args)
        raise error

    with pytest.raises(type(error)) as caught:
        bench.queue(bench.wrap(None, execute)).publish("g", "p")
    assert caught.value is error
    assert len(calls) == 1
    assert not batch.is_noscript(error)


def test_an_error_of_the_repair_is_the_one_raised(bench: Bench) -> None:
    """If the repair fails, its error passes through, without the NOSCRIPT as its context."""
    answers: list[Exception] = [redis.exceptions.NoScriptError("x"), redis.ConnectionError("gone")]

    def execute(*_: Any, **__: Any) -> Any:
        raise answers.pop(0)

    with pytest.raises(redis.ConnectionError) as caught:
        bench.queue(bench.wrap(None, execute)).publish("g", "p")
    assert caught.value.__context__ is None
    assert answers == []


def test_a_reply_is_no_noscript() -> None:
    """Text that came as a reply is no error."""
    assert not batch.is_noscript(b"NOSCRIPT")
    assert not batch.is_noscript("NOSCRIPT")
    assert not batch.is_noscript(None)


@pytest.mark.parametrize("library", ["redis", "valkey"])
def test_pipelines_of_a_real_client_heal(bench: Bench, server: Any, library: str) -> None:
    """The pipelines of the client libraries hand NOSCRIPT back as a reply, and the calls run again."""
    needs(library)
    client = bench.real(server.url, library, decode_responses=True)
    queue, commands = bench.queue(client), bench.blocking(client)
    commands.set(KEYS.q("x"), "no list")
    with pytest.raises(Exception, match="WRONGTYPE") as caught:
        queue.publish_many([*MESSAGES, ("x", "x")])
    assert news(caught.value, "published") == ([1, 1, 2, 1, 3, 2, None],)
    commands.script_flush()
    leases = queue.claim_many(5)
    assert [lease.group for lease in leases] == ["a", "b", "c"]
    commands.script_flush()
    acked, lease = queue.ack_and_claim(leases[0])
    assert (acked, lease.payload) == (True, b"a2")
