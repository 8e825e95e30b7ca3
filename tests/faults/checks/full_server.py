"""E5: a server at maxmemory that evicts nothing."""

from __future__ import annotations

import pytest
import redis

from tests.faults.rig import Rig, codes

ROOM = 512 * 1024
PAYLOAD = "x" * 8000


def check_e5(rig: Rig) -> None:
    """A full server can be drained: all but publish work, also where a repair is the first write."""
    _filled_by_publishes(rig)
    _everything_but_publish(rig)
    _tier_recovery(rig)
    for locked in (9, 30):
        _repair(rig, locked)


def _filled_by_publishes(rig: Rig) -> None:
    """The real cause: messages are published until the server refuses one."""
    rig.reset()
    config = rig.admin.config_get("maxmemory")
    try:
        rig.admin.config_set("maxmemory", int(rig.admin.info("memory")["used_memory"]) + ROOM)
    except redis.ResponseError as error:
        pytest.skip(f"{rig.host.name}: maxmemory cannot be set here: {error}")
    try:
        stored = 0
        while not codes(reply := rig.do("publish", group=f"g{stored:04}", payload=PAYLOAD, priority=stored % 5)):
            stored += 1
            rig.expect(stored < ROOM // 1000, "the server never gets full")
        rig.trace = [line[:120] for line in rig.trace[-3:]]
        rig.expect(codes(reply) != "REDISQ_BADARG", "the publish is refused for another reason")
        claimed = rig.do("claim", token="A")
        rig.expect(not codes(claimed), "a full server refuses claim: it cannot be drained")
    finally:
        rig.admin.config_set("maxmemory", config["maxmemory"])


def _everything_but_publish(rig: Rig) -> None:
    rig.reset()
    for number in range(6):
        rig.publish(f"g{number}", "1", priority=number % 5)
        rig.publish(f"g{number}", "2")
    rig.raw("DEL", rig.key("q", "g5"))
    held = [rig.claim(f"t{number}") for number in range(2)]
    rig.expect(held == [(b"g0", b"1"), (b"g1", b"1")], f"not what is due: {held}")
    with rig.full():
        before = rig.state()
        for group in ("g0", "g2", "new"):
            rig.expect(codes(rig.do("publish", group=group, payload="3")), "a full server takes a publish")
            rig.expect(rig.unchanged(before), f"the refused publish to {group} has written something")
        claimed = rig.do("claim", token="A")
        rig.expect(not codes(claimed), "a full server refuses claim: it cannot be drained")
        rig.expect(rig.messages("g2") == [b"1", b"2"], "the claim has taken something away")
        if not rig.old:
            renewed = rig.do("extend", group="g0", token="t0", visibility_ms=60_000)
            rig.expect(not codes(renewed), "a full server refuses extend: a lease cannot be renewed")
        returned = rig.do("nack", group="g0", token="t0")
        rig.expect(not codes(returned), "a full server refuses nack: a message cannot be given back")
        parked = rig.do("nack", group="g1", token="t1", delay_ms=500)
        rig.expect(not codes(parked), "a full server refuses to park a message")
        rig.expect(rig.claim("B") == (b"g0", b"1"), "the message that was given back does not come first")
        rig.expect(rig.ack("g0", "B") == 1, "a full server refuses ack")
        rig.expect(len(rig.drain()) == 9, "not every message comes out of a full server")
        rig.expect_empty()


def _tier_recovery(rig: Rig) -> None:
    """A settlement that writes the `prio` field back."""
    if rig.old:
        return
    rig.reset()
    for number in range(3):
        rig.publish(f"g{number}", "1", priority=2)
        rig.publish(f"g{number}", "2")
        rig.claim(f"t{number}")
    rig.raw("DEL", rig.key("prio", "").removesuffix(b":"))
    with rig.full():
        settled = [rig.ack("g0", "t0"), rig.nack("g1", "t1"), rig.extend("g2", "t2")]
        rig.expect(settled == [1, 1, 1], "a full server refuses to write a lost field back")
        rig.expect(rig.state().prio == {f"g{number}".encode(): b"2" for number in range(3)}, "the field is not back")


def _repair(rig: Rig, locked: int) -> None:
    """K locked due groups before one free one: the repair is no refused first write."""
    rig.reset()
    rig.foreign("crowd", size=locked, tier=1, score_ms=rig.now_ms - 500, visibility_ms=30_000, messages=1)
    with rig.full():
        nothing = rig.do("claim", token="A")
        rig.expect(not codes(nothing), "a full server refuses the repair of a page")
    rig.foreign("crowd", size=locked, tier=1, score_ms=rig.now_ms - 500, visibility_ms=30_000, messages=1)
    rig.publish("free", "m", priority=1)
    rig.foreign("set-entry", group="free", tier=1, score_ms=rig.now_ms - 400)
    with rig.full():
        got = rig.do("claim", token="A")
        rig.expect(not codes(got), "a full server refuses the repair before a free group")
        rig.expect(rig.ack("free", "A") == 1, "the free group behind locked ones was not claimed")
        rig.wait(30_002)
        rig.expect(len(rig.drain()) == locked, "not every locked group comes back")
        rig.expect_empty()
