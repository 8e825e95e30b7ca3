"""The types of the public interface, as a type checker sees them in a user's program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import redisq
from tests.unit.queues import needs

GOOD = """
import fakeredis
import redis
import redis.asyncio
import redis.cluster
import valkey
import valkey.asyncio
from redisq import AsyncRedisTransport, Lease, RedisTransport

sync = [
    RedisTransport(redis.Redis()),
    RedisTransport(redis.cluster.RedisCluster(), prefix="{a}"),
    RedisTransport(valkey.Valkey(), clock=lambda: 1),
    RedisTransport(fakeredis.FakeRedis(), candidates=1, new_groups="arrival"),
]
asynchronous = [
    AsyncRedisTransport(redis.asyncio.Redis()),
    AsyncRedisTransport(redis.asyncio.RedisCluster()),
    AsyncRedisTransport(valkey.asyncio.Valkey()),
    AsyncRedisTransport(fakeredis.FakeAsyncRedis()),
]


def use(queue: RedisTransport) -> None:
    lengths: list[int] = queue.publish_many([("g", b"p"), (b"g", "p", 4)], chunk=10)
    lease: Lease | None = queue.claim(visibility=1, min_priority=1, worker_id="w")
    assert lease
    renewed: Lease | None = queue.extend(lease, 5)
    both: tuple[bool, Lease | None] = queue.ack_and_claim(lease)
    many: list[Lease] = queue.claim_many(3)
    done: bool = queue.ack(lease) or queue.nack(lease, delay=1.5)
    length: int = queue.publish(b"g", "p")


async def use_async() -> None:
    async with AsyncRedisTransport.from_url("redis://host", decode_responses=True) as queue:
        lease: Lease | None = await queue.claim()
        many: list[Lease] = await queue.claim_many(3)
        lengths: list[int] = await queue.publish_many(iter([("g", "p")]))
"""

BAD = """
import redis
from redisq import Lease, RedisTransport

queue = RedisTransport(redis.Redis())
queue.publish(1, "p")
queue.publish("g", None)
queue.ack("token")
queue.claim(visibility="30")
queue.publish_many([("g",)])
queue.claim().ack()
RedisTransport(object())
def rename(lease: Lease) -> None:
    lease.group = "other"
"""


def check(folder: Path, program: str) -> list[str]:
    """The errors that a strict type checker reports for a program that uses the library."""
    needs("mypy")
    needs("valkey")
    file = folder / "program.py"
    file.write_text(program)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={folder}/cache", str(file)],
        cwd=Path(redisq.__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if "error:" in line]


@pytest.mark.parametrize(("program", "errors"), [(GOOD, []), (BAD, [6, 7, 8, 9, 10, 11, 12, 14])], ids=["good", "bad"])
def test_a_users_program_is_checked(tmp_path: Path, program: str, errors: list[int]) -> None:
    """Clients of every library fit, results have their types, and wrong arguments are found."""
    found = check(tmp_path, program)
    ours = [line for line in found if "no-untyped-call" not in line]
    assert sorted({int(line.split(":")[1]) for line in ours}) == errors, "\n".join(found)
