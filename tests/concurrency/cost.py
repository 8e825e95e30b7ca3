"""``python -m tests.concurrency.cost``: what watching costs the server, and how fast the replay judges.

The server's own processor time for each call of a script is taken with and without a client that listens to MONITOR, in
turns; a server that is busy all the time loses that much throughput. The lines that were heard are then replayed.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable

import redis

from redisq import RedisTransport
from redisq.scripts import SCRIPTS
from tests.support.replay.monitor import Monitor, parse
from tests.support.replay.replay import Replay
from tests.support.running import BaseServer
from tests.support.servers import discover

ROUNDS = 9
MESSAGES = 1_500
GROUPS = 50


def work(client: redis.Redis) -> int:
    """Publishes, claims and acks messages of many groups, in few round trips; how many scripts that ran."""
    queue, calls = RedisTransport(client), 0
    calls += len(queue.publish_many([(b"group-%d" % (number % GROUPS), b"x" * 100) for number in range(MESSAGES)]))
    while leases := queue.claim_many(GROUPS):
        calls += GROUPS
        for lease in leases:
            queue.ack(lease)
            calls += 1
    return calls + GROUPS


def processor_us(client: redis.Redis, run: Callable[[], int]) -> float:
    """The server's processor time for each call."""

    def used() -> float:
        info = client.info("cpu")
        return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])

    before = used()
    calls = run()
    return (used() - before) / calls * 1e6


def measure(server: BaseServer) -> str:
    """One line."""
    client, lines = server.client(), list[bytes]()
    alone, watched = [], []
    for _ in range(ROUNDS):
        alone.append(processor_us(client, lambda: work(client)))
        with Monitor(server.url) as monitor:
            lines.clear()
            listening = threading.Thread(target=lambda: lines.extend(monitor.lines()))
            listening.start()
            watched.append(processor_us(client, lambda: work(client)))
        listening.join()
    ratio = statistics.median(w / a for a, w in zip(alone, watched, strict=True))
    replay = Replay(b"redisq", {script.sha: name for name, script in SCRIPTS.items()})
    begun = time.perf_counter()
    for line in lines:
        if (entry := parse(line)) is not None:
            replay.add(entry)
    replay.end()
    speed = replay.steps / (time.perf_counter() - begun)
    assert replay.finding is None, replay.finding
    times = (
        f"{statistics.median(alone):.1f} µs of processor time for a call, {statistics.median(watched):.1f} µs watched"
    )
    return f"{server.name}: {times}: {1 - 1 / ratio:.0%} less throughput; {speed:,.0f} steps a second are judged"


def main() -> None:
    """Every server found."""
    for source in discover():
        with source.start() as server, server.clock.released():  # type: ignore[attr-defined]
            print(measure(server), flush=True)


if __name__ == "__main__":
    main()
