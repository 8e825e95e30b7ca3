"""The operations of both transports, seen from outside."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import fakeredis
import pytest
import redis
import redis.asyncio.retry
from redis.backoff import NoBackoff

from redisq import Lease, RedisqError
from redisq.keys import Keys
from redisq.ops.doctor import retries_of
from tests.unit.queues import Bench, contents


def test_a_message_goes_through(queue: Any) -> None:
    """What is published is claimed with its lease, and gone after the ack."""
    assert queue.publish("orders", "first") == 1
    assert queue.publish("orders", b"second", priority=4) == 2
    before = time.monotonic()
    lease = queue.claim(visibility=30, worker_id="me")
    assert (lease.group, lease.payload, lease.visibility) == ("orders", b"first", 30.0)
    assert lease.token.startswith("me:")
    assert before + 30 <= lease.deadline <= time.monotonic() + 30
    assert queue.claim() is None
    assert queue.ack(lease) is True
    assert queue.ack(lease) is False
    assert contents(queue) == {"orders": ["second"]}


@pytest.mark.parametrize("data", [b"", b"\x00\r\n", b"\xff\xfe", "\u00fc\U0001f600".encode(), bytes(range(256))])
def test_any_bytes_go_through(bench: Bench, data: bytes) -> None:
    """Payloads and groups of any bytes come back as they were, as bytes and as text, however the client decodes."""
    for decode in (False, True):
        queue = bench.queue(bench.fake(decode_responses=decode))
        group = data or b"g"
        queue.publish(group, data)
        lease = queue.claim()
        assert (os.fsencode(lease.group), lease.payload) == (group, data)
        assert lease.text.encode("utf-8", "surrogateescape") == data
        assert queue.ack(lease)
        queue.publish(lease.group, lease.text)
        assert queue.claim().payload == data


def test_nack_at_once_and_parked(queue: Any) -> None:
    """Without a delay the message is there again at once; with one the group is parked and the lease is dead."""
    queue.publish("g", "p")
    lease = queue.claim()
    assert queue.nack(lease) is True
    again = queue.claim()
    assert (again.group, again.payload, again.token != lease.token) == ("g", b"p", True)
    assert queue.nack(again, delay=3600) is True
    assert queue.claim() is None
    assert queue.ack(again) is False
    assert queue.nack(again) is False
    assert queue.extend(again) is None


def test_extend_renews(queue: Any) -> None:
    """The renewed lease is the old one with a new end."""
    queue.publish("g", "p")
    lease = queue.claim(visibility=10)
    renewed = queue.extend(lease, visibility=100)
    assert (renewed.group, renewed.payload, renewed.token) == (lease.group, lease.payload, lease.token)
    assert (renewed.visibility, renewed.deadline - lease.deadline >= 90) == (100.0, True)
    assert queue.ack(renewed)
    assert queue.extend(renewed) is None


def test_min_priority_leaves_lower_tiers_out(queue: Any) -> None:
    """Only groups of the tier and above are claimed."""
    queue.publish_many([("low", "p"), ("high", "p", 3)])
    assert queue.claim(min_priority=3).group == "high"
    assert queue.claim(min_priority=1) is None
    assert queue.claim().group == "low"


def test_a_prefix_is_a_queue_of_its_own(bench: Bench) -> None:
    """KEYS-5: queues of two prefixes on one server share nothing."""
    fake = bench.fake()
    one, two = bench.queue(fake, "one"), bench.queue(fake, prefix="two")
    one.publish("g", "p")
    assert two.claim() is None
    assert one.claim().payload == b"p"


@pytest.mark.parametrize(("new_groups", "order"), [("first", ["new", "old"]), ("arrival", ["old", "new"])])
def test_where_new_groups_start(bench: Bench, new_groups: str, order: list[str]) -> None:
    """A new group comes before every group served so far, or in line at its arrival."""
    now = 1_000.0

    def clock() -> float:
        nonlocal now
        now += 1
        return now

    queue = bench.queue(bench.fake(), clock=clock, new_groups=new_groups)
    queue.publish_many([("old", "1"), ("old", "2")])
    queue.ack(queue.claim())
    queue.publish("new", "1")
    assert [lease.group for lease in queue.claim_many(2)] == order


def test_a_clients_clock_decides_what_is_due(bench: Bench) -> None:
    """With a clock of the client scores are that clock's milliseconds."""
    client = bench.fake()
    queue = bench.queue(client, clock=lambda: 1_234.5678)
    queue.publish("g", "p")
    queue.claim(visibility=10)
    assert bench.blocking(client).zscore(Keys(b"redisq").ready(0), "g") == 1_244_567


ERRORS = [
    redis.ConnectionError("gone"),
    redis.TimeoutError("late"),
    redis.exceptions.ReadOnlyError("You can't write against a read only replica."),
    redis.exceptions.ResponseError("OOM command not allowed"),
    OSError("wire"),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_of_the_client_pass_through(bench: Bench, error: BaseException) -> None:
    """Every operation raises the client's own error object, and calls the client no second time."""
    lease = Lease("g", b"p", "t", 1.0, 1.0)
    calls = []

    def fail(_: Any, *args: Any, **options: Any) -> Any:
        assert options == {"NEVER_DECODE": True}
        calls.append(args)
        raise error

    queue = bench.queue(bench.wrap(None, fail))
    operations: list[Callable[[], Any]] = [
        lambda: queue.publish("g", "p"),
        lambda: queue.claim(),
        lambda: queue.ack(lease),
        lambda: queue.nack(lease),
        lambda: queue.extend(lease),
        lambda: queue.publish_many([("g", "p")]),
        lambda: queue.claim_many(1),
        lambda: queue.ack_and_claim(lease),
    ]
    for operation in operations:
        calls.clear()
        with pytest.raises(type(error)) as caught:
            operation()
        assert caught.value is error
        assert [args[0] for args in calls[:1]] in (["EVALSHA"], ["EVAL"])
        assert len({args[3:] for args in calls}) == len(calls)


def test_an_error_of_the_server_keeps_its_class(bench: Bench) -> None:
    """A key of the wrong type is the client's ResponseError, no RedisqError."""
    client = bench.fake()
    queue = bench.queue(client)
    bench.blocking(client).set(Keys(b"redisq").q("g"), "no list")
    with pytest.raises(redis.ResponseError) as caught:
        queue.publish("g", "p")
    assert not isinstance(caught.value, RedisqError)


def test_close_leaves_an_injected_client_open(bench: Bench) -> None:
    """Neither close nor a with block closes a client that was handed in."""
    closed: list[str] = []
    client = bench.fake()
    queue = bench.transport(client)
    for name in ("close", "aclose"):
        if hasattr(client, name):
            setattr(client, name, lambda: closed.append("closed"))
    enter(bench, queue)
    bench.blocking(queue).close()
    assert closed == []
    for name in ("close", "aclose"):
        vars(client).pop(name, None)


@pytest.mark.parametrize("way", ["close", "with"])
def test_a_queue_from_a_url_owns_its_client(bench: Bench, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """from_url makes a client with the given options, and close or the with block closes it."""
    made: list[Any] = []
    closed: list[Any] = []

    def from_url(url: str, **options: Any) -> Any:
        client = bench.fake(decode_responses=options.pop("decode_responses"))
        closing = "aclose" if bench.kind == "async" else "close"
        close = getattr(client, closing)

        def noted() -> Any:
            closed.append(client)
            return close()

        monkeypatch.setattr(client, closing, noted)
        made.append((url, options, client))
        return client

    module = redis.asyncio if bench.kind == "async" else redis
    monkeypatch.setattr(module.Redis, "from_url", from_url)
    queue = bench.transport.from_url(
        "redis://host:1/2", prefix="{a}", clock=lambda: 5.0, candidates=1, new_groups="arrival", decode_responses=True
    )
    ((url, options, client),) = made
    assert (url, options.keys(), options["retry"].get_retries()) == ("redis://host:1/2", {"retry"}, 0)
    bench.blocking(queue).publish("g", b"\xff")
    assert bench.blocking(client).zscore("{a}:ready:0", "g") == 5000
    assert closed == []
    if way == "with":
        enter(bench, queue)
    else:
        bench.blocking(queue).close()
    assert closed == [client]


def enter(bench: Bench, queue: Any, error: Exception | None = None) -> None:
    """Enters the queue as a context manager, and leaves it, by an error if one is given."""

    def body(entered: Any) -> None:
        assert entered is queue
        if error:
            raise error

    async def run() -> None:
        async with queue as entered:
            body(entered)

    if bench.kind == "async":
        bench.runner.run(run())
    else:
        with queue as entered:
            body(entered)


def test_an_error_leaves_the_with_block(bench: Bench) -> None:
    """The with block swallows nothing."""
    error = RuntimeError()
    with pytest.raises(RuntimeError) as caught:
        enter(bench, bench.transport(bench.fake()), error)
    assert caught.value is error


def test_from_url_repeats_calls_if_it_is_told_to(bench: Bench) -> None:
    """A `retry` among the options is the client's."""
    retry = (redis.asyncio.retry if bench.kind == "async" else redis.retry).Retry(NoBackoff(), 3)
    queue = bench.transport.from_url("redis://host", retry=retry)
    assert retries_of(queue._client) == 3


def test_from_url_without_redis_says_what_to_install(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing redis-py is an ImportError that names the extra."""
    monkeypatch.setitem(sys.modules, "redis.asyncio" if bench.kind == "async" else "redis", None)
    with pytest.raises(ImportError, match=r"pip install 'redisq-transport\[redis\]'"):
        bench.transport.from_url("redis://host")


def test_from_url_passes_errors_of_the_client_through(bench: Bench) -> None:
    """A URL that redis-py does not know is its ValueError."""
    with pytest.raises(ValueError, match="scheme"):
        bench.transport.from_url("http://host")


def test_from_url_reaches_a_server(bench: Bench, server: Any) -> None:
    """A queue by URL works on a real server with any options of the client."""
    queue = bench.blocking(bench.transport.from_url(server.url, protocol=3, decode_responses=True))
    try:
        assert queue.publish("g", b"\xff") == 1
        assert queue.claim().payload == b"\xff"
    finally:
        queue.close()


def test_two_kinds_share_one_queue() -> None:
    """What one transport publishes the other claims and settles."""
    server = fakeredis.FakeServer()
    one, two = Bench("sync"), Bench("async")
    try:
        blocking, asynchronous = one.queue(one.fake(server=server)), two.queue(two.fake(server=server))
        blocking.publish("g", "p")
        lease = asynchronous.claim()
        assert blocking.claim() is None
        assert blocking.ack(lease)
    finally:
        one.end()
        two.end()
