"""asyncio over real connections: many tasks on one client, and calls that are cancelled at any point.

A cancelled call may have taken effect: a message may be stored, a lease taken that nobody knows of until it ends, a
lease settled. Its connection is dropped, so no other call ever gets its reply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis
import redis.asyncio

from redisq import AsyncRedisTransport, Lease
from tests.faults.proxy import Proxy
from tests.faults.transports import async_client, warm
from tests.support.running import BaseServer

TASKS = 200
POINTS = 5
"""Of how many turns of the loop a call is given one to be cancelled in."""
CANCELLED = object()


def test_200_tasks_on_one_client(server: BaseServer) -> None:
    """Of 200 tasks on one client each gets a group of its own, and every reply goes to the task that asked."""

    async def main() -> None:
        # More tasks than connections: a pool that waits for a free one, where the default raises at 100.
        pool = redis.asyncio.BlockingConnectionPool.from_url(server.url, max_connections=50, timeout=60)
        client: Any = redis.asyncio.Redis.from_pool(pool)
        queue = AsyncRedisTransport(client)
        lengths = await asyncio.gather(*(queue.publish(f"g{number}", f"{number}") for number in range(TASKS)))
        assert lengths == [1] * TASKS

        async def work() -> str:
            lease = await queue.claim()
            assert lease is not None
            assert lease.group == f"g{lease.text}"
            assert await queue.publish(lease.group, "again") == 2
            renewed = await queue.extend(lease, 60)
            assert renewed is not None
            assert renewed.token == lease.token
            assert await queue.ack(lease)
            assert not await queue.ack(lease)
            return lease.group

        groups = await asyncio.gather(*(work() for _ in range(TASKS)))
        assert set(groups) == {f"g{number}" for number in range(TASKS)}
        leases = await queue.claim_many(TASKS + 1)
        assert [lease.text for lease in leases] == ["again"] * TASKS
        await client.aclose()

    asyncio.run(main())


class Caller:
    """A task with a queue of its own on a client of all: what it gets back can only be its own."""

    def __init__(self, client: Any, number: int) -> None:
        self.client = client
        self.queue = AsyncRedisTransport(client, f"own{number}")
        self.random = Random(number)
        self.number = number
        self.wrong: list[str] = []
        self.sent = 0
        self.cancelled = 0
        self.published = [0, 0]
        """How often for certain, and how often perhaps; so for acks."""
        self.acked = [0, 0]

    async def run(self, calls: int) -> None:
        """So many calls, about half of them cancelled at some point."""
        lease: Lease | None = None
        for _ in range(calls):
            kind = self.random.choice(("publish", "publish", "claim", "echo"))
            if lease is not None:
                held, lease = lease, None
                self.count(self.acked, await self.call(self.queue.ack, held), (True, False))
            elif kind == "publish":
                await self.publish()
            elif kind == "claim":
                got = await self.call(self.queue.claim)
                lease = got if isinstance(got, Lease) else None
                if lease and (lease.group != f"g{self.number}" or not lease.text.startswith(f"{self.number}:")):
                    self.wrong.append(f"claim of {self.number} gave {lease}")
                elif not lease and got is not None and got is not CANCELLED:
                    self.wrong.append(f"claim gave {got!r}")
            else:
                await self.echo()

    async def publish(self) -> None:
        """The length is that of its own group, which nobody else knows."""
        self.sent += 1
        length = await self.call(self.queue.publish, f"g{self.number}", f"{self.number}:{self.sent}")
        certain, perhaps = self.published
        self.count(self.published, length, range(certain - sum(self.acked) + 1, certain + perhaps + 2))

    async def echo(self) -> None:
        """What is sent comes back."""
        text = f"{self.number}-{self.random.random()}".encode()
        got = await self.call(self.client.execute_command, "ECHO", text)
        if got is not CANCELLED and got != text:
            self.wrong.append(f"ECHO {text!r} gave {got!r}")

    def count(self, outcomes: list[int], got: Any, allowed: Any) -> None:
        """One more certain outcome, or one more unknown."""
        if got is CANCELLED:
            outcomes[1] += 1
        elif type(got) not in (int, bool) or got not in allowed:
            self.wrong.append(f"{self.number}: {got!r} is none of {allowed}")
        else:
            outcomes[0] += int(got is not False)

    async def call(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """The result, an exception as a result, or CANCELLED."""
        task = asyncio.ensure_future(function(*args))
        if self.random.random() < 0.5:
            for _ in range(self.random.randrange(POINTS)):
                await asyncio.sleep(0)
            task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            self.cancelled += 1
            return CANCELLED
        except Exception as error:
            return error


async def cancelled_at_random(client: Any, tasks: int) -> list[Caller]:
    """So many callers at once on one client."""
    callers = [Caller(client, number) for number in range(tasks)]
    await asyncio.gather(*(caller.run(25) for caller in callers))
    return callers


def test_cancelled_calls_mix_up_no_replies(server: BaseServer) -> None:
    """B63, B64: 200 tasks cancel calls at random points; every reply is its caller's, and nothing is stored twice."""

    async def main() -> list[Caller]:
        client = async_client(server.url, max_connections=2 * TASKS)
        callers = await cancelled_at_random(client, TASKS)
        await client.aclose()
        return callers

    callers = asyncio.run(main())
    assert [caller.wrong for caller in callers if caller.wrong] == []
    assert sum(caller.cancelled for caller in callers) > TASKS
    client: Any = server.client()
    for caller in callers:
        stored = client.llen(f"own{caller.number}:q:g{caller.number}")
        (published, perhaps_published), (acked, perhaps_acked) = caller.published, caller.acked
        assert published - acked - perhaps_acked <= stored <= published + perhaps_published - acked


class Careless:
    """A client that keeps its connection when a call is cancelled, with the reply still to come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.lock = asyncio.Lock()

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Sends, and reads whatever comes next."""
        words = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
        async with self.lock:
            self.writer.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words))
            return await self.read()

    async def read(self) -> Any:
        """One reply of RESP2."""
        kind, rest = (line := await self.reader.readline())[:1], line[1:-2]
        if kind == b"*":
            return [await self.read() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else (await self.reader.readexactly(int(rest) + 2))[:-2]
        if kind == b"-":
            raise redis.ResponseError(rest.decode())
        return int(rest) if kind == b":" else rest

    def pipeline(self, transaction: bool) -> Any:
        """Never called."""


def test_mixed_up_replies_are_seen(server: BaseServer) -> None:
    """The same callers find a client that hands the reply of a cancelled call to the next one."""
    warm(server)

    async def main() -> list[str]:
        reader, writer = await asyncio.open_connection(urlsplit(server.url).hostname, server.port)
        async with asyncio.timeout(60):  # such a client could also wait for ever
            callers = await cancelled_at_random(Careless(reader, writer), 10)
        writer.close()
        await writer.wait_closed()
        return [wrong for caller in callers for wrong in caller.wrong]

    assert asyncio.run(main())


async def cancelled_once_it_ran(proxy: Proxy, call: Awaitable[Any]) -> BaseException:
    """Cancels a call whose script has run and whose reply is on its way."""
    proxy.hold_replies()
    task = asyncio.ensure_future(call)
    assert await asyncio.to_thread(proxy.happened.wait, 20)
    for _ in range(10):  # until it waits for the reply: wait_for of Python 3.11 forgets a cancel as the send ends
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    proxy.release()
    return caught.value


def test_a_cancelled_call_may_have_taken_effect(server: BaseServer) -> None:
    """B64: cancelled while the reply is on its way, a message is stored, a lease taken until it ends, or settled."""
    server.clock.prefixes = ["redisq"]
    warm(server)
    seen: Any = server.client()

    async def main(proxy: Proxy) -> None:
        client = async_client(proxy.url)
        queue = AsyncRedisTransport(client)
        await cancelled_once_it_ran(proxy, queue.publish("g", "1"))
        assert seen.lrange("redisq:q:g", 0, -1) == [b"1"]
        error: Any = await cancelled_once_it_ran(proxy, queue.publish_many([("g", "2"), ("h", "3")]))
        assert (error.published, error.unknown) == ([None, None], [0, 1])
        assert seen.llen("redisq:q:g") + seen.llen("redisq:q:h") == 3
        await cancelled_once_it_ran(proxy, queue.claim(visibility=30))
        assert seen.exists("redisq:lock:g") == 1
        lease = await queue.claim()
        assert lease is not None
        assert lease.text == "3"
        await cancelled_once_it_ran(proxy, queue.ack(lease))
        assert await queue.ack(lease) is False
        assert seen.exists("redisq:q:h") == 0
        server.clock.advance(30_001)
        (lease,) = await queue.claim_many(2)
        assert (lease.text, await queue.ack(lease)) == ("1", True)
        await client.aclose()

    with Proxy(server.url) as proxy:
        asyncio.run(main(proxy))


def test_a_call_cancelled_before_it_began_does_nothing(server: BaseServer) -> None:
    """B64: a task that is cancelled before it has run sends nothing."""

    async def main() -> None:
        client: Any = async_client(server.url)
        task = asyncio.ensure_future(AsyncRedisTransport(client).publish("g", "m"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.aclose()

    asyncio.run(main())
    assert server.client().keys("*") == []
