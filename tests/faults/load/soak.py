"""``python -m tests.faults.load.soak``: a queue under load while everything is done to it that `injury` knows.

The seed decides what is done in which order, and what each process does; how these meet differs from run to run. Exit
code 0: every promise was kept. 1: one was not, and the journals stay where the output says.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.faults.load import injury
from tests.faults.load.account import Account, told
from tests.faults.load.injury import AOF, Scene, disk_of, real_time
from tests.faults.load.run import load
from tests.faults.proxy import Proxy
from tests.support.servers import Server, discover, resolve

INJURIES = (
    *(injury.kill_worker, injury.kill_connection, injury.flush_scripts, injury.squeeze, injury.keep_busy),
    *(injury.jump_ahead, injury.jump_back, injury.lose_request, injury.lose_reply, injury.hold_replies),
    *(injury.kill_server, injury.lose_power),
)
PAUSE = 0.05
"""Seconds between two of them, on the average."""
RECOVER_SECONDS = 0.5
TIMEOUT = 0.3
CHECKED = ("lost", "delivered again after its ack", "out of order", "two at once", "never published", "left behind")


@contextlib.contextmanager
def scene(server: Server, disk: Path, settings: dict[str, Any]) -> Iterator[Scene]:
    """The load, through a proxy, in real time."""
    with (
        real_time(server),
        Proxy(server.url) as proxy,
        load(server.url, proxy.url, producers=3, workers=5, timeout=TIMEOUT, **settings) as under_way,
    ):
        yield Scene(server, under_way, proxy, disk)


def soak(binary: str, seconds: float, **settings: Any) -> tuple[dict[str, Any], Account]:
    """Runs it; `settings` as `Settings` has them. Returns what was injected and what came of it, and the account."""
    with tempfile.TemporaryDirectory(prefix="redisq-soak-") as folder:
        disk, env = disk_of(Path(folder))
        with Server(resolve(binary).path, (*AOF, "--appendfsync", "always"), env) as server:
            with scene(server, disk, settings) as under_way:
                end = time.monotonic() + seconds
                while (left := end - time.monotonic()) > 0:
                    under_way.injure(*INJURIES, pause=PAUSE)
                    if sys.stderr.isatty():
                        print(f"\r{left:6.0f} s left, {under_way.done:,} injuries", end="", file=sys.stderr, flush=True)
                time.sleep(RECOVER_SECONDS)
                account = under_way.load.account()
                if account.wrong:
                    kept = tempfile.mkdtemp(prefix="redisq-soak-")
                    shutil.copytree(under_way.load.folder, kept, dirs_exist_ok=True)
                    print(f"the journals are in {kept}", file=sys.stderr)
            return figures(under_way, account, f"{server.name} {server.version}"), account


def figures(scene: Scene, account: Account, host: str) -> dict[str, Any]:
    """What was done, and what came of it, in numbers."""
    injuries = {injury.__name__: scene.counts[injury.__name__] for injury in INJURIES}
    published = sum(call.op == "publish" and call.outcome == "done" for call in account.calls)
    return {
        "host": host,
        "injected": sum(injuries.values()),
        "injuries": injuries,
        "calls": len(account.calls),
        "operations": dict(sorted(Counter(call.op for call in account.calls).items())),
        "outcomes": dict(sorted(account.outcomes().items())),
        "published": published,
        "wrong": {kind: len(account.wrong.get(kind, ())) for kind in CHECKED},
        "duplicates": dict(account.duplicates.most_common()),
    }


def lines(found: dict[str, Any], seconds: float, seed: str) -> Iterator[str]:
    """The figures for a person."""

    def counted(counts: dict[str, int]) -> str:
        return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())

    yield f"soak        {found['host']}, {seconds:g} s, seed {seed}"
    yield f"injected    {found['injected']:,}: {counted(found['injuries'])}"
    yield f"calls       {found['calls']:,}: {counted(found['operations'])}"
    yield f"outcomes    {counted(found['outcomes'])}"
    yield f"published   {found['published']:,} answered"
    yield f"checked     {counted(found['wrong'])}"
    yield f"duplicates  {counted(found['duplicates']) or 'none'}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults.load.soak", description=(__doc__ or "").partition(": ")[2].split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=300.0, help="how long things are done to it (%(default)s)")
    parser.add_argument("--seed", default="1", help="decides what is done, and in which order (%(default)s)")
    parser.add_argument("--redis-server", metavar="BINARY", help="the server; the first one found unless given")
    parser.add_argument("--json", action="store_true", help="prints the figures as JSON")
    options = parser.parse_args(argv)
    binary = options.redis_server or next((str(source.path) for source in discover()), "")
    if not binary:
        parser.error("no redis-server or valkey-server was found: name one with --redis-server")
    found, account = soak(binary, options.seconds, seed=options.seed)
    print(json.dumps(found) if options.json else "\n".join(lines(found, options.seconds, options.seed)), flush=True)
    if account.wrong:
        print(told(account.wrong, 20))
        print("BROKEN")
        return 1
    if not options.json:
        print("KEPT: every message that was published is accounted for")
    return 0


if __name__ == "__main__":
    sys.exit(main())
