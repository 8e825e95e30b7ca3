"""E5-1: a server at maxmemory refuses publishes, and can be drained."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis

from model.operation import Delivery, Ok
from tests.support.port.checks.rig import NotAsked, Rig, refused
from tests.support.port.witness import Port


def check_full_server(port: Port) -> None:
    """Every operation on a full server, also where a page of locked groups comes before a free one."""
    rig = Rig(port)
    _settlements(rig)
    _behind_locked(rig)


def _settlements(rig: Rig) -> None:
    rig.reset()
    for group in (b"a", b"b", b"c"):
        for payload in (b"1", b"2"):
            rig.by_others("publish", group=group, payload=payload)
    rig.by_others("claim", token=b"A")
    with _full(rig):
        before = rig.state()
        for group in (b"a", b"new"):
            rig.expect(refused(rig.by_port("publish", group=group, payload=b"3")), "a full server takes a publish")
            rig.expect(not rig.port.difference(before, rig.state()), "a refused publish has written something")
        claimed = rig.by_port("claim", token=b"B")
        rig.expect(claimed == Ok(Delivery(b"b", b"1")), "a full server refuses claim: nothing can be drained")
        if "extend" in rig.port.adapter.hello.capabilities:
            rig.expect(rig.by_port("extend", group=b"b", token=b"B") == Ok(1), "a full server refuses extend")
        rig.expect(rig.by_port("ack", group=b"b", token=b"B") == Ok(1), "a full server refuses ack")
        rig.expect(not refused(rig.by_port("nack", group=b"a", token=b"A")), "a full server refuses nack")
        claimed = rig.by_port("claim", token=b"C")
        rig.expect(claimed == Ok(Delivery(b"a", b"1")), "a message that was given back does not come first")
        parked = rig.by_port("nack", group=b"a", token=b"C", delay_ms=500)
        rig.expect(not refused(parked), "a full server refuses to park a message")
        came = rig.drain()
        left = [(b"a", b"1"), (b"a", b"2"), (b"b", b"2"), (b"c", b"1"), (b"c", b"2")]
        rig.expect(sorted(came) == left, f"not every message comes out of a full server: {came}")


def _behind_locked(rig: Rig) -> None:
    if "window-repair" not in rig.port.adapter.hello.capabilities:
        return
    rig.reset()
    rig.by_others("crowd", size=9, tier=0, score_ms=0, visibility_ms=30_000, messages=1)
    rig.by_others("publish", group=b"free", payload=b"m")
    with _full(rig):
        claimed = rig.by_port("claim", token=b"A")
        rig.expect(claimed == Ok(Delivery(b"free", b"m")), "a full server refuses to move locked groups out of the way")


@contextmanager
def _full(rig: Rig) -> Iterator[None]:
    try:
        before = {name: rig.admin.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
        rig.admin.config_set("maxmemory-policy", "noeviction")
        rig.admin.config_set("maxmemory", 1)
    except redis.RedisError as error:
        raise NotAsked(f"maxmemory cannot be set on this server: {error}") from error
    rig.said("the server is full")
    try:
        yield
    finally:
        for name, value in before.items():
            rig.admin.config_set(name, value)
