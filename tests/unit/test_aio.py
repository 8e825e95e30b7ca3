"""What only the asyncio transport shows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import fakeredis
import pytest
import redis.asyncio

from redisq import AsyncRedisTransport


def test_an_asyncio_queue_as_people_write_it() -> None:
    """Every operation is awaited; async with closes what from_url opened."""

    async def main() -> list[Any]:
        client = fakeredis.FakeAsyncRedis(server=fakeredis.FakeServer())
        async with AsyncRedisTransport(client, new_groups="arrival") as queue:
            published = await queue.publish_many([("a", "1"), ("b", "2"), ("a", "3")])
            leases = await queue.claim_many(3, visibility=60)
            acked, lease = await queue.ack_and_claim(leases[0])
            assert lease is not None
            result = [published, [each.text for each in leases], acked, lease.text, await queue.nack(lease, 5)]
        await client.aclose()
        return result

    assert asyncio.run(main()) == [[1, 1, 2], ["1", "2"], True, "3", True]


def test_claims_at_once_get_different_groups(server: Any) -> None:
    """CLAIM-7: tasks that claim at the same time over one client never hold the same group."""

    async def main() -> None:
        client = redis.asyncio.Redis.from_url(server.url)
        queue = AsyncRedisTransport(client)
        await queue.publish_many([(f"g{number}", "p") for number in range(20)])
        leases = await asyncio.gather(*(queue.claim() for _ in range(30)))
        groups = [lease.group for lease in leases if lease]
        assert sorted(groups) == sorted({f"g{number}" for number in range(20)})
        await client.aclose()

    asyncio.run(main())


class Hanging:
    """A client that answers the first pipeline, and nothing else ever."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.pipelines = 0

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Never returns."""
        self.waits.set()
        await asyncio.Event().wait()

    def pipeline(self, transaction: bool) -> HangingPipeline:
        """The first one will answer."""
        self.pipelines += 1
        return HangingPipeline(self, self.pipelines == 1)


class HangingPipeline:
    """A pipeline that may never return."""

    def __init__(self, client: Hanging, answers: bool) -> None:
        self.client = client
        self.answers = answers

    def execute_command(self, *args: Any, **options: Any) -> None:
        """Nothing is sent."""

    async def execute(self, raise_on_error: bool) -> Any:
        """One reply, or none ever."""
        return [1] if self.answers else await self.client.execute_command()


def test_a_cancelled_call_is_cancelled() -> None:
    """CancelledError passes through a call, and through publish_many with the news of what was stored."""

    async def cancelled(start: Callable[[AsyncRedisTransport], Coroutine[Any, Any, Any]]) -> Any:
        client = Hanging()
        task = asyncio.create_task(start(AsyncRedisTransport(client)))
        await client.waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return caught.value

    assert not hasattr(asyncio.run(cancelled(lambda queue: queue.claim())), "published")
    messages = [("a", "1"), ("b", "1"), ("c", "1")]
    error = asyncio.run(cancelled(lambda queue: queue.publish_many(messages, chunk=1)))
    assert (error.published, error.unknown) == ([1, None, None], [1])
