"""AsyncRedisTransport: the queue over redis.asyncio or a client like it. What needs no I/O is in scripts and batch."""

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, Protocol, Self, SupportsIndex, TypeVar

from redisq import arguments, batch
from redisq.lease import Lease
from redisq.scripts import Call, Calls, Command, Message

T = TypeVar("T")


class AsyncClient(Protocol):
    """What is used of a redis-py-compatible client."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Runs one command. The option NEVER_DECODE leaves the reply undecoded."""

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline, with execute_command and execute."""


class AsyncRedisTransport:
    """A queue of message groups on Redis.

    Messages of one group are delivered one at a time, in the order in which they were published; groups in parallel.

    - `client`: a client of redis.asyncio or one that is compatible, whatever its `decode_responses` and `protocol` are.
    - `prefix`: names the queue; every key begins with it. Not empty, without a part `q`, `lock` or `ready` after
      a colon; with a cluster client it needs a hash tag, such as `{orders}`.
    - `clock`: None takes the server's clock. A callable that returns the epoch in seconds takes the client's, for
      services that refuse TIME in scripts; the clocks of all clients must then agree.
    - `candidates`: 1 to 99, how many groups a claim reads at a time once the first one it meets is not free.
    - `new_groups`: where a group starts that had no messages: `"first"`, before every group served so far (a steady
      stream of new groups then shuts the others out), or `"arrival"`, behind every group that is due by then.

    Raises `InvalidArgument` for each of them, and so does every method for an argument that is not of its form, before
    any I/O. Errors of the client pass through untouched. What was interrupted while it waited for the reply (by an
    error of the connection, a timeout or a cancellation) may have taken effect: a message may be stored, a lease taken
    that nobody knows of until it ends, a lease settled. A client that then retries by itself, as redis.Redis() does,
    can so publish twice, answer None to a claim that took a lease, and False to an ack that settled; the client of
    `from_url` does not.
    """

    def __init__(
        self,
        client: AsyncClient,
        prefix: str = "redisq",
        clock: Callable[[], float] | None = None,
        candidates: SupportsIndex = 8,
        new_groups: str = "first",
    ) -> None:
        arguments.client(client, "AsyncRedisTransport")
        self._client: Any = client
        self._calls = Calls(arguments.prefix(prefix, client), clock, candidates, new_groups)
        self._owned = False

    @classmethod
    def from_url(
        cls,
        url: str,
        *,
        prefix: str = "redisq",
        clock: Callable[[], float] | None = None,
        candidates: SupportsIndex = 8,
        new_groups: str = "first",
        **client_options: Any,
    ) -> Self:
        """A queue with a client of its own: redis.asyncio.Redis.from_url(url, **client_options).

        That client repeats no call by itself, whatever the version of redis-py, unless `retry` is among the options.
        Close it with `aclose` or `async with`. Raises `ImportError` if redis-py is not installed.
        """
        try:
            library = import_module("redis.asyncio")
            retries, backoff = import_module("redis.asyncio.retry"), import_module("redis.backoff")
        except ImportError as error:
            raise ImportError("from_url needs redis-py: pip install 'redisq-transport[redis]'") from error
        client_options.setdefault("retry", retries.Retry(backoff.NoBackoff(), 0))
        queue = cls(library.Redis.from_url(url, **client_options), prefix, clock, candidates, new_groups)
        queue._owned = True
        return queue

    async def aclose(self) -> None:
        """Closes the client if `from_url` made it; one that was handed in stays open.

        Leases that are still held stay until they end; give them back with `nack` first.
        """
        if self._owned:
            await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def publish(self, group: str | bytes, payload: str | bytes, priority: SupportsIndex = 0) -> int:
        """Appends a message to its group and returns how many messages the group then has, this one included.

        - `group`: not empty; `payload`: may be empty. Each `str` (UTF-8 with surrogateescape) or `bytes`, at most
          512 MB.
        - `priority`: an integer, clamped to 0 to 4. It counts only for a group that has no messages: a group
          keeps the priority of its first message until it drains. A claim without `min_priority` does not prefer high
          ones.
        """
        return await self._run(self._calls.publish(group, payload, priority))

    async def publish_many(self, messages: Iterable[Message], chunk: SupportsIndex = 1000) -> list[int]:
        """Publishes many messages in few round trips and returns for each what `publish` returns.

        - `messages`: tuples `(group, payload)` or `(group, payload, priority)`, as for `publish`. All are taken from
          the iterable, checked and held in memory before the first is sent.
        - `chunk`: 1 to 10000, how many go into one round trip.

        Each group keeps their order. They are not stored all at once: others can publish and claim in between.

        If one fails, the rest of its chunk is stored all the same and the chunks after it are not sent. The client's
        first error is raised with a note and two attributes that tell what to send again: `published`, a list with one
        entry per message, what `publish` returns or None if it was not stored; and `unknown`, a list of the
        indexes of the messages that have None there but may have been stored, for their reply was lost. Of a client
        that retries by itself they tell the last try.
        """
        calls = self._calls.messages(messages)
        outcomes: list[int | Exception] = []
        for part in batch.parts(calls, chunk):
            try:
                outcomes += await self._run_many(part, batch.in_order(part))
            except BaseException as error:
                batch.report(error, outcomes, len(calls), len(part))
                raise
            batch.check_stored(outcomes, len(calls))
        return [length for length in outcomes if isinstance(length, int)]

    async def claim(
        self, visibility: float = 30.0, min_priority: SupportsIndex = 0, worker_id: str = ""
    ) -> Lease | None:
        """Leases a group that is due and not leased or parked, and returns its oldest message; None if there is none.

        The group that has been due for longest comes first, whatever its priority; of equals the one of the lower
        tier, then of the smaller name in bytes.

        - `visibility`: seconds until the lease ends unless it is settled or extended, more than 0, at most ten years;
          rounded up to a millisecond.
        - `min_priority`: an integer, clamped to 0 to 4; groups of a lower tier are left out.
        - `worker_id`: a `str` that begins the token, for people who look at locks; it needs not be unique.
        """
        return await self._run(self._calls.claim(visibility, min_priority, worker_id))

    async def claim_many(
        self,
        count: SupportsIndex,
        visibility: float = 30.0,
        min_priority: SupportsIndex = 0,
        worker_id: str = "",
    ) -> list[Lease]:
        """Makes many claims in one round trip, each of another group, and returns the leases: none to `count`.

        `count` is 1 to 10000; the other arguments are those of `claim`. If some of the claims fail, the leases of the
        others are returned; only if there is none, the client's first error is raised.
        """
        calls = self._calls.claims(count, visibility, min_priority, worker_id)
        return batch.taken(await self._run_many(calls, [call.by_sha for call in calls]))

    async def ack(self, lease: Lease) -> bool:
        """Settles a lease for good: its message is removed and its group is free for the next one.

        False if the token holds no lease any more: it ended, or was settled before. Then nothing was changed, and
        the message may be delivered again; only if an ack before this one lost its reply, that one may have settled.
        """
        return await self._run(self._calls.ack(lease))

    async def nack(self, lease: Lease, delay: float = 0.0) -> bool:
        """Gives a lease back: its message stays the first of its group. False as for `ack`.

        `delay`: seconds until the group can be claimed again, 0 or more, at most ten years; rounded up to
        a millisecond. Beware of 0: the group then comes before every group served so far, so a message that always
        fails is claimed again and again and others wait. With a delay the group is parked, and falls in line after it.
        """
        return await self._run(self._calls.nack(lease, delay))

    async def extend(self, lease: Lease, visibility: float = 30.0) -> Lease | None:
        """Renews a lease, to end `visibility` seconds from now (as for `claim`), be that later or sooner than before.

        Returns the lease with its new deadline; None if the token holds no lease any more.
        """
        return await self._run(self._calls.extend(lease, visibility))

    async def ack_and_claim(
        self, lease: Lease, visibility: float = 30.0, min_priority: SupportsIndex = 0, worker_id: str = ""
    ) -> tuple[bool, Lease | None]:
        """An `ack`, then a `claim`, in one round trip; returns both results. Not atomic: others can claim in between.

        If one of them fails, the client's first error is raised with a note and two attributes that tell what the
        other did: `acked`, a `bool`, or None if the ack failed; and `lease`, the `Lease` taken or None.
        """
        calls: list[Call[Any]] = [self._calls.ack(lease), self._calls.claim(visibility, min_priority, worker_id)]
        return batch.both(*await self._run_many(calls, [call.by_sha for call in calls]))

    async def _run(self, call: Call[T]) -> T:
        try:
            reply = await self._client.execute_command(*call.by_sha, NEVER_DECODE=True)
        except Exception as error:
            if not batch.is_noscript(error):
                raise
        else:
            return call.read(reply)
        return call.read(await self._client.execute_command(*call.by_source, NEVER_DECODE=True))

    async def _run_many(self, calls: Sequence[Call[T]], commands: Sequence[Command]) -> list[T | Exception]:
        pipe = self._client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command, NEVER_DECODE=True)
        replies = await pipe.execute(raise_on_error=False)
        for index in batch.unserved(replies):
            try:
                replies[index] = await self._client.execute_command(*calls[index].by_source, NEVER_DECODE=True)
            except Exception as error:  # whatever the client raises is what this call came to
                replies[index] = error
                if not batch.is_refusal(error):
                    break
        return [batch.outcome(call, reply) for call, reply in zip(calls, replies, strict=True)]
