"""``python -m tests.concurrency.worker CONFIG``: one process of workers. CONFIG is JSON; see ``run``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from model.operation import Delivery, Error, Fault, Json, Ok, Operation, Reply
from redisq import AsyncRedisTransport, Lease, RedisTransport
from redisq.keys import decode, encode
from tests.concurrency.history import Log
from tests.concurrency.plan import PREFIX, Answer, Call, Nap, Settings, plan
from tests.faults.callers import TwoStep
from tests.support.designs import designs, lay_over
from tests.support.original import Original
from tests.support.port.messages import reply, request
from tests.support.port.process import PortError
from tests.support.port.witness import Adapter
from tests.support.witness import LuaFiles, Scripts

SOCKET_SECONDS = 20.0
ANSWERS = frozenset(("REDISQ_BADARG", "WRONGTYPE", "OOM", "NOPERM", "NOSCRIPT", "READONLY"))
"""Error codes that are the server's answer; after any other error it is unknown what happened."""


class Library:
    """The library. Every call is one round trip, and none is repeated: an error of the connection is the end of it."""

    def __init__(self, kind: Any, client: Any, client_clock: bool) -> None:
        self._kind = kind
        self._client = client
        self._clock = time.time if client_clock else None

    def begin(self, operation: Operation) -> Any:
        """The result of the call; of the asyncio transport something to be awaited."""
        args: Any = {name: operation[name] for name in operation.args}
        made = {"prefix": decode(PREFIX), "clock": self._clock}
        if operation.op == "publish":
            return self._kind(self._client, **made).publish(args["group"], args["payload"], args["priority"])
        if operation.op == "claim":
            queue = self._kind(self._client, candidates=args["candidates"], **made)
            return queue.claim(args["visibility_ms"] / 1000, args["min_priority"], decode(args["token"]))
        queue = self._kind(self._client, **made)
        lease = Lease(decode(args["group"]), b"", decode(args["token"]), 1.0, 0.0)
        if operation.op == "ack":
            return queue.ack(lease)
        if operation.op == "nack":
            return queue.nack(lease, args["delay_ms"] / 1000)
        return queue.extend(lease, args["visibility_ms"] / 1000)

    @staticmethod
    def answer(operation: Operation, result: Any) -> Answer:
        """The result as a reply."""
        if operation.op == "claim" and result is not None:
            return Ok(Delivery(encode(result.group), result.payload)), encode(result.token)
        if operation.op in ("publish", "claim"):
            return Ok(result), b""
        return Ok(int(result is not None and result is not False)), b""


@contextlib.contextmanager
def unknown_if_lost(answers: list[Answer]) -> Iterator[None]:
    """An error of the connection leaves the answer unknown; one of the server's is the answer."""
    try:
        yield
    except redis.RedisError as error:
        code = str(error).split(" ", 1)[0]
        answers.append((Error(code) if code in ANSWERS else None, b""))


def connected(url: str) -> redis.Redis:
    """A client that repeats nothing by itself."""
    return redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=SOCKET_SECONDS)


def of_library(client: redis.Redis, client_clock: bool) -> Callable[[Call], Answer]:
    """Calls by the blocking transport."""
    library = Library(RedisTransport, client, client_clock)

    def call(each: Call) -> Answer:
        answers: list[Answer] = []
        with unknown_if_lost(answers):
            answers.append(library.answer(each.operation, library.begin(each.operation)))
        return answers[0]

    return call


def of_port(command: str, url: str) -> Callable[[Call], Answer]:
    """Calls by a port's adapter."""
    adapter = Adapter(command, SOCKET_SECONDS)
    adapter.start()
    opening = {"op": "open", "url": url, "prefix": {"utf8": PREFIX.decode()}}
    adapter.ask(opening)

    def call(each: Call) -> Answer:
        try:
            got, token = reply(adapter.ask(request(each.operation)), each.operation.op)
        except PortError:
            adapter.start()
            adapter.ask(opening)
            return None, b""
        asked = each.operation.args.get("token")
        assert asked is None or isinstance(asked, bytes)
        if _known(got) is None:  # a client that does not connect again by itself is connected anew
            adapter.ask(opening)
        return _known(got), token or asked or b""

    return call


def of_design(name: str, url: str, folder: Path) -> Callable[[Call], Answer]:
    """Calls of a known-bad design's scripts; its nack may be held up between two round trips."""
    (design,) = [each for each in designs() if each.name == name]
    client = connected(url)
    host: Any = SimpleNamespace(name="server", client=lambda: client)
    if name == "original":
        caller: Scripts = Original(host, LuaFiles(design.path, missing_ok=True), design)
    else:
        lua = LuaFiles(lay_over(design, folder / name))
        caller = TwoStep(host, lua, design) if design.nack else Scripts(host, lua)
    nack: Any = getattr(caller, "_nack", None)

    def call(each: Call) -> Answer:
        operation = Operation(each.operation.op, time.time_ns() // 1_000_000, each.operation.args)
        if operation.op == "nack" and nack is not None:
            answers: list[Answer] = []
            with unknown_if_lost(answers):
                answers.append((Ok(_in_steps(nack, client, operation, each.stall_ms)), b""))
            return answers[0]
        token = operation.args.get("token")
        assert token is None or isinstance(token, bytes)
        return _known(caller.call(operation)), token or b""

    return call


def _in_steps(nack: Any, client: Any, operation: Operation, stall_ms: int) -> int:
    """A nack of several round trips, held up once the token has been read."""
    args = [operation[name] for name in ("group", "token", "delay_ms")]
    steps = nack(client, PREFIX, args[0], args[1], operation.time_ms, args[2])
    try:
        for number in range(100):
            next(steps)
            if number == 1:
                time.sleep(stall_ms / 1000)
    except StopIteration as end:
        return int(end.value)
    raise AssertionError("a nack without an end")


def _known(got: Reply) -> Reply | None:
    return None if isinstance(got, Fault) or (isinstance(got, Error) and got.code not in ANSWERS) else got


def run(lane: str, settings: Settings, log: Log, call: Callable[[Call], Answer]) -> None:
    """One lane, blocking."""
    steps, number = plan(lane, settings), 0
    step: Call | Nap = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            if isinstance(step, Nap):
                time.sleep(step.ms / 1000)
                step = next(steps)
                continue
            number += 1
            log.invoked(number, step.operation, time.monotonic_ns())
            answer = call(step)
            log.completed(number, *answer, time.monotonic_ns())
            step = steps.send(answer)


async def run_async(lane: str, settings: Settings, log: Log, url: str, client_clock: bool) -> None:
    """One lane among others of the process, by the asyncio transport."""
    retry = redis.asyncio.retry.Retry(NoBackoff(), 0)
    client = redis.asyncio.Redis.from_url(url, retry=retry, socket_timeout=SOCKET_SECONDS)
    library = Library(AsyncRedisTransport, client, client_clock)
    steps, number = plan(lane, settings), 0
    step: Call | Nap = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            if isinstance(step, Nap):
                await asyncio.sleep(step.ms / 1000)
                step = next(steps)
                continue
            number += 1
            log.invoked(number, step.operation, time.monotonic_ns())
            answers: list[Answer] = []
            with unknown_if_lost(answers):
                answers.append(library.answer(step.operation, await library.begin(step.operation)))
            log.completed(number, *answers[0], time.monotonic_ns())
            step = steps.send(answers[0])
    await client.aclose()


async def _together(lanes: list[Any]) -> None:
    await asyncio.gather(*lanes)


def main(config: Json) -> None:
    """The process: ``kind``, ``settings``, ``folder``, and its ``lanes`` with the URL of each."""
    settings, folder, kind = Settings(**config["settings"]), Path(config["folder"]), config["kind"]
    logs = {lane: Log(folder / f"{lane}.log") for lane in config["lanes"]}
    clock = bool(config["client_clock"])
    if kind == "async":
        lanes = [run_async(lane, settings, logs[lane], url, clock) for lane, url in config["lanes"].items()]
        asyncio.run(_together(lanes))
        return
    ((lane, url),) = config["lanes"].items()
    if kind == "sync":
        call = of_library(connected(url), clock)
    elif kind.startswith("port "):
        call = of_port(kind.removeprefix("port "), url)
    else:
        call = of_design(kind.removeprefix("design "), url, folder / "lua" / lane)
    run(lane, settings, logs[lane], call)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
