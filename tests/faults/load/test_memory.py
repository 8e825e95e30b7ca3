"""Servers that are full and stay full, and servers that evict what they should keep."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from redisq import RedisTransport
from tests.faults.judge import DESIGNS
from tests.faults.load.account import Account, told
from tests.faults.load.injury import real_time
from tests.faults.load.run import expect_kept, load
from tests.faults.topology import another
from tests.support.designs import lay_over
from tests.support.running import BaseServer


@contextlib.contextmanager
def emptied(server: BaseServer) -> Iterator[BaseServer]:
    """Another one of its kind, whose memory holds nothing else."""
    with another(server) as fresh, real_time(fresh):
        yield fresh


def drained_while_full(server: BaseServer, patience: float = 10.0, **settings: Any) -> tuple[Account, bool]:
    """What workers and producers do on a server that stays full; and whether the workers emptied it."""
    with emptied(server) as full, load(full.url, producers=1, workers=0, **settings) as under_way:
        client: Any = full.client()
        time.sleep(1.0)
        client.config_set("maxmemory", 1)
        under_way.start(producers=0, workers=3)
        empty = under_way.wait_until(lambda: client.exists("redisq:prio") == 0, patience)
        return under_way.account(), empty


def test_a_server_that_stays_full(server: BaseServer) -> None:
    """FAULT-3: workers drain a server that stays full, while every publish is refused with nothing written."""
    account, empty = drained_while_full(server)
    expect_kept(account)
    assert empty
    refused = Counter(call.op for call in account.calls if call.outcome == "refused")
    assert refused["publish"] > 0
    assert refused.keys() == {"publish"}


def test_scripts_that_begin_with_set(one_server: BaseServer, tmp_path: Any) -> None:
    """Scripts whose claim begins with a write that takes memory leave a full server full."""
    lay_over(DESIGNS["set-first"], tmp_path / "laid")
    _, empty = drained_while_full(one_server, 1.0, scripts=str(tmp_path / "laid"))
    assert not empty


def evicting(server: BaseServer, policy: str, patience: float = 10.0) -> Account:
    """A load on a server that is at maxmemory every now and then, and evicts by that policy."""
    with emptied(server) as small, load(small.url) as under_way:
        client: Any = small.client()
        client.config_set("maxmemory-policy", policy)
        for _ in range(15):
            time.sleep(0.04)
            client.config_set("maxmemory", 1)  # everything that may go goes
            with contextlib.suppress(redis.ResponseError):
                client.set("something", "to make room for")
            client.config_set("maxmemory", 0)
        client.delete("something")
        return under_way.account(patience)


def test_locks_that_are_evicted(server: BaseServer) -> None:
    """FAULT-9: eviction of what has a TTL takes locks: leases are lost, and delivered again; no message is."""
    expect_kept(evicting(server, "volatile-random"))


def test_messages_that_are_evicted(server: BaseServer) -> None:
    """FAULT-9: eviction of anything takes messages, which is why `noeviction` is needed; the account tells."""
    account = evicting(server, "allkeys-random", 1.0)
    assert account.lost, told(account.wrong)


def test_refused_is_not_stored(server: BaseServer) -> None:
    """FAULT-3: a publish that was answered OOM left nothing: not the message, no entry, no priority."""
    with emptied(server) as full:
        client: Any = full.client()
        client.config_set("maxmemory", 1)
        with pytest.raises(redis.ResponseError, match=r"OOM|maxmemory"):
            RedisTransport(client).publish("g", "m", 3)
        assert client.keys() == []
