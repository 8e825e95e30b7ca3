"""Many messages in few round trips: each stored once, in order, and an error that tells which."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import redis

from redisq import RedisqError, batch
from redisq.keys import Keys
from redisq.scripts import Call
from tests.unit.queues import MESSAGES, STORED, Bench, Meddled, contents, flush, load, news, raising

KEYS = Keys(b"redisq")


@pytest.mark.parametrize("chunk", [1, 2, 5, 6, 7, 1000])
def test_publish_many_stores_all_in_order(queue: Any, chunk: int) -> None:
    """Whatever the chunks, every message is stored once, each group in the order given, and the replies are in line."""
    assert queue.publish_many(MESSAGES, chunk) == [1, 1, 2, 1, 3, 2]
    assert contents(queue) == STORED


def test_publish_many_of_nothing_and_of_anything_iterable(queue: Any) -> None:
    """No message is no call; an iterator is read to its end; a priority is optional; lists do as tuples."""
    assert queue.publish_many([]) == []
    assert queue.publish_many(message for message in [("a", "1", 4), ["b", b"2"]]) == [1, 1]
    assert queue.claim(min_priority=4).group == "a"


def test_a_chunk_is_one_round_trip(bench: Bench) -> None:
    """Each chunk is sent as one pipeline, and nothing else is sent."""
    trips: list[int] = []

    class Counted:
        def __init__(self) -> None:
            self.commands: list[Any] = []

        def execute_command(self, *args: Any, **options: Any) -> None:
            assert options == {"NEVER_DECODE": True}
            self.commands.append(args)

        def reply(self) -> list[Any]:
            trips.append(len(self.commands))
            return [1] * len(self.commands)

        def execute(self, raise_on_error: bool) -> Any:
            async def later() -> list[Any]:
                return self.reply()

            return later() if bench.kind == "async" else self.reply()

    client = bench.wrap(None, raising(AssertionError()))
    client.pipeline = lambda transaction: Counted()
    queue = bench.queue(client)
    assert queue.publish_many([("g", "p")] * 25, chunk=10) == [1] * 25
    assert trips == [10, 10, 5]


def test_no_flush_anywhere_loses_doubles_or_reorders(bench: Bench) -> None:
    """A script cache emptied before any command, and filled again by others before any later one, changes nothing."""
    last = len(MESSAGES) + 3
    for flushed, loaded in combinations(range(last), 2):
        meddled = Meddled(bench)
        meddled.before(flushed, flush)
        meddled.before(loaded, load)
        assert meddled.queue.publish_many(MESSAGES, chunk=5) == [1, 1, 2, 1, 3, 2]
        assert contents(meddled.queue) == STORED


def test_by_sha_alone_would_reorder(meddled: Meddled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: if only the first command of a chunk brought the script along, a follower could overtake."""

    def first_only(calls: list[Call[int]]) -> list[Any]:
        return [call.by_sha if index else call.by_source for index, call in enumerate(calls)]

    monkeypatch.setattr(batch, "in_order", first_only)
    meddled.before(2, flush)
    meddled.before(3, load)
    meddled.queue.publish_many(MESSAGES)
    assert contents(meddled.queue)["a"] == ["a1", "a3", "a2"]


def publish_rest(queue: Any, messages: list[Any], error: Any) -> None:
    """What a caller does who knows which messages are stored."""
    assert len(error.published) == len(messages)
    queue.publish_many([message for message, length in zip(messages, error.published, strict=True) if length is None])


@pytest.mark.parametrize("chunk", [2, 3, 1000])
def test_refused_messages_are_told(meddled: Meddled, chunk: int) -> None:
    """The first error of the server is raised, and it tells which messages are stored; with it a caller can go on."""
    meddled.commands.set(KEYS.q("b"), "no list")
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.publish_many(MESSAGES, chunk)
    expected = {
        2: ([1, None, None, None, None, None], "stored: 0; not stored: 1-5; unknown: none"),
        3: ([1, None, 2, None, None, None], "stored: 0, 2; not stored: 1, 3-5; unknown: none"),
        1000: ([1, None, 2, 1, 3, None], "stored: 0, 2-4; not stored: 1, 5; unknown: none"),
    }
    assert news(caught.value, "published", "unknown") == (expected[chunk][0], [])
    assert caught.value.__notes__ == [f"publish_many: {expected[chunk][1]}"]
    meddled.commands.delete(KEYS.q("b"))
    publish_rest(meddled.queue, MESSAGES, caught.value)
    assert contents(meddled.queue) == STORED


@pytest.mark.parametrize("kind", [redis.ConnectionError, OSError, KeyboardInterrupt])
def test_a_lost_chunk_is_told(meddled: Meddled, kind: type[BaseException]) -> None:
    """A failure of the connection is raised as it is; it tells what is stored, what is not, and what nobody knows."""
    error = kind("gone")
    meddled.before(3, raising(error))
    with pytest.raises(kind) as caught:
        meddled.queue.publish_many(MESSAGES, chunk=2)
    assert caught.value is error
    assert news(caught.value, "published", "unknown") == ([1, 1, None, None, None, None], [2, 3])
    assert error.__notes__ == ["publish_many: stored: 0-1; not stored: 4-5; unknown: 2-3"]


def test_a_repair_that_fails_is_told(meddled: Meddled) -> None:
    """If the connection is lost while a chunk is repaired, only the message that was on the way is unknown."""
    meddled.queue.publish("x", "x")
    messages = [("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")]
    meddled.before(1, flush)
    meddled.before(5, raising(redis.ConnectionError("gone")))
    with pytest.raises(redis.ConnectionError) as caught:
        meddled.queue.publish_many(messages)
    assert news(caught.value, "published", "unknown") == ([1, 1, None, None], [2])
    assert caught.value.__notes__ == ["publish_many: stored: 0-1; not stored: 3; unknown: 2"]


def test_a_repair_that_is_refused_goes_on(meddled: Meddled) -> None:
    """A refusal of one repair says that this message is not stored; the others are still repaired."""
    meddled.commands.set(KEYS.q("c"), "no list")
    meddled.before(1, flush)
    with pytest.raises(redis.ResponseError) as caught:
        meddled.queue.publish_many([("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")])
    assert news(caught.value, "published", "unknown") == ([1, 1, None, 1], [])


def test_a_reply_that_no_script_makes_is_unknown(bench: Bench) -> None:
    """Nobody knows what such a message came to; the error says so."""
    replies = [1, b"1"]
    queue = bench.queue(bench.wrap(None, lambda *args, **options: replies.pop(0)))
    with pytest.raises(RedisqError) as caught:
        queue.publish_many([("a", "1"), ("b", "1")])
    assert news(caught.value, "published", "unknown") == ([1, None], [1])
