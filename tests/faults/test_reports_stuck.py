"""Reports of groups that are stuck, and of keys and memory that are left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import subprocess
import sys
from random import Random
from typing import Any

import pytest
import redis

from redisq import Lease, RedisTransport
from tests.faults.checks.histories import History
from tests.faults.judge import Control, Judge
from tests.faults.proxy import Proxy
from tests.faults.rig import Check, Rig
from tests.faults.transports import sync_client
from tests.support.running import BaseServer

SEEDS = range(8)


def killed_anywhere(rig: Rig) -> None:
    """B13, FAIL-6: workers of a random history end at any point of it; a fresh one gets all that was not acked."""
    for seed in SEEDS:
        for length in range(3, 60, 8):
            rig.reset()
            history = History(rig, seed)
            for _ in range(length):
                history.step()
            history.expect_all_delivered()


def locks_end(rig: Rig) -> None:
    """B18: after every operation each lock has a TTL."""
    for seed in SEEDS:
        rig.reset()
        history = History(rig, seed)
        for _ in range(40):
            word = history.step()
            for group, lock in rig.state().locks.items():
                rig.expect(lock.deadline_ms is not None, f"after {word} the lock of {group!r} never ends")


def nothing_left(rig: Rig) -> None:
    """B22, KEYS-4: many groups of any bytes, some of which lost their lists, leave no key once they are drained."""
    random = Random(22)
    groups = tuple({random.randbytes(random.randrange(1, 9)) for _ in range(150)})
    history = History(rig, 22)
    for _ in range(600):
        history.step(groups)
    lost = random.sample([group for group in groups if history.stored[group]], 20)
    for group in lost:
        rig.raw("DEL", rig.prefix + b":q:" + group)
        history.stored[group].clear()
    history.expect_all_delivered()


CYCLES, BATCH, SLACK = 10_000, 500, 100_000
"""How often a group comes and goes, how many of them in one round trip, and how many bytes may come and go."""


def memory_stays(rig: Rig) -> None:
    """B24: ten thousand groups that come and go leave the server's memory as it was."""
    _cycles(rig, 0, 2 * BATCH)
    before = int(rig.admin.info("memory")["used_memory"])
    for first in range(2 * BATCH, 2 * BATCH + CYCLES, 5 * BATCH):
        _cycles(rig, first, 5 * BATCH)
        grown = int(rig.admin.info("memory")["used_memory"]) - before
        rig.expect(grown < SLACK, f"{first} groups that came and went left {grown} bytes")
    rig.expect_empty()


def _cycles(rig: Rig, first: int, count: int) -> None:
    lua, prefix = rig.caller.lua, rig.prefix
    for name in ("publish", "claim", "ack"):
        rig.admin.script_load(lua.source[name])
    for start in range(first, first + count, BATCH):
        pipe = rig.admin.pipeline(transaction=False)
        for number in range(start, start + BATCH):
            group = b"g%08d" % number
            calls = {
                "publish": (group, b"x" * 100, b"%d" % (number % 5), b"0"),
                "claim": (b"", b"30000", b"A", b"8", b"0"),
                "ack": (group, b"A", b""),
            }
            for name, argv in calls.items():
                pipe.execute_command("EVALSHA", lua.sha[name], 1, prefix + b":prio", prefix, *argv)
        rig.expect(pipe.execute()[2::3] == [1] * BATCH, "a group did not come and go")


CHECKS = [killed_anywhere, locks_end, nothing_left, memory_stays]
SET_LOCK = "redis.call('SET', prefix .. ':lock:' .. best[1], token, 'PX', px)"
BUMP = "redis.call('ZADD', best[3], string.format('%.0f', now + px), best[1])"
PARK = "redis.call('SET', lock, 'parked', 'PX', delay)"
CONTROLS = [
    Control(killed_anywhere, "wedged groups", edits={"claim": (BUMP, "redis.call('ZREM', best[3], best[1])")}),
    Control(locks_end, "after claim the lock of", "lock-without-px"),
    Control(locks_end, "after park the lock of", edits={"nack": (PARK, "redis.call('SET', lock, 'parked')")}),
    Control(nothing_left, "keys are left behind", "drain-keeps-entry"),
    Control(nothing_left, "keys are left behind", "prio-kept-on-drain"),
    Control(nothing_left, "keys are left behind", "stale-keeps-prio"),
    Control(memory_stays, "came and went left", "drain-keeps-entry"),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_stuck(judge: Judge, check: Check) -> None:
    """B13, B18, B22, B24: whoever ends anywhere wedges no group, and what is drained leaves nothing."""
    judge.passes(check)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_stuck_undone(judge: Judge, control: Control) -> None:
    """Each of these checks finds the scripts that get it wrong."""
    judge.convicts(control)


WORKER = """
import sys, redis
from redisq import RedisTransport
client = redis.Redis.from_url(sys.argv[1])
queue = RedisTransport(client)
number = 0
while lease := queue.claim(visibility=30):
    client.rpush("delivered", lease.group + " " + lease.text)
    number += 1
    if number == 100:
        client.rpush("go", "now")
    if number % 7 == 0:
        queue.nack(lease)
    elif number % 5 == 0:
        queue.extend(lease, 60)
        queue.ack(lease)
    else:
        queue.ack(lease)
"""


def test_killed_worker(server: BaseServer) -> None:
    """B13, FAIL-6: kill -9 of a worker in the middle of its work loses nothing and wedges no group."""
    server.clock.prefixes = ["redisq"]
    client: Any = server.client(socket_timeout=30)
    queue = RedisTransport(client)
    queue.publish_many([(f"g{number % 40}", str(number)) for number in range(4000)])
    command = [sys.executable, "-c", WORKER, server.url]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as worker:
        assert client.blpop("go")
        assert worker.poll() is None, "the worker ended by itself"
        worker.kill()
    delivered = set(client.lrange("delivered", 0, -1))
    server.clock.advance(60_001)
    left: list[Lease] = []
    while lease := queue.claim():
        left.append(lease)
        assert queue.ack(lease)
    for group in range(40):
        numbers = [int(lease.text) for lease in left if lease.group == f"g{group}"]
        published = list(range(group, 4000, 40))
        assert numbers == published[len(published) - len(numbers) :]
        gone = published[: len(published) - len(numbers)]
        assert {f"g{group} {number}".encode() for number in gone} <= delivered
    assert client.keys("*") == [b"delivered"]


def test_killed_connections(server: BaseServer) -> None:
    """B25: a worker whose connection ends 150 times, idle, before a request and before a reply, processes all."""
    server.clock.prefixes = ["redisq"]
    admin: Any = server.client()
    RedisTransport(admin).publish_many([(f"g{number % 20}", str(number)) for number in range(150)])
    delivered: set[str] = set()
    errors = 0
    with Proxy(server.url) as proxy, contextlib.closing(sync_client(proxy.url)) as client:
        queue = RedisTransport(client)

        def killed() -> None:
            admin.execute_command("CLIENT", "KILL", "ID", client.client_id())

        kills = itertools.cycle([killed, None, proxy.lose_request, None, None, proxy.lose_reply, None])
        while True:
            try:
                if kill := next(kills):
                    kill()
                if (lease := queue.claim(visibility=30)) is not None:
                    delivered.add(lease.text)
                    if kill := next(kills):
                        kill()
                    queue.ack(lease)
                elif admin.exists("redisq:prio"):
                    server.clock.advance(30_001)  # a claim whose reply was lost holds its group so long
                else:
                    break
            except redis.ConnectionError:
                errors += 1
    assert errors >= 50
    assert delivered == {str(number) for number in range(150)}
    assert admin.keys("*") == []
