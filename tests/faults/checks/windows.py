"""E3, E12 and E13: what stands in the window before a free group."""

from __future__ import annotations

from tests.faults.rig import Rig, codes

AHEAD_MS = 40_000
SLOW_MS = 60_000


def check_e3(rig: Rig) -> None:
    """Clocks that differ hide no free group, a client's clock moves no deadline, and the server's is the default."""
    _served_goes_behind(rig)
    _fast_claimer(rig)
    _slow_workers(rig)
    _client_clock_moves_nothing(rig)
    for locked in (9, 25, 60):
        _behind_locked(rig, locked)


def _lease(rig: Rig, count: int, now_ms: int | None = None) -> list[str]:
    """So many groups, leased for 30 s by workers whose clock shows `now_ms`."""
    groups = [f"g{number:02}" for number in range(count)]
    for group in groups:
        rig.publish(group, "m")
    for number in range(count):
        rig.claim(f"worker{number}", visibility_ms=30_000, now_ms=now_ms)
    rig.expect(set(rig.state().locks) == {group.encode() for group in groups}, "not every group is leased")
    return groups


def _fast_claimer(rig: Rig) -> None:
    rig.reset()
    rig.publish("free", "1")
    rig.publish("free", "2")
    fast_ms = rig.now_ms + AHEAD_MS
    rig.claim("fast", now_ms=fast_ms)
    rig.ack("free", "fast", now_ms=fast_ms)  # its score is later than those of the groups leased next
    _lease(rig, 8)
    got = rig.claim("fast", now_ms=fast_ms)
    rig.expect(got == (b"free", b"2"), "a claimer whose clock is ahead does not find the free group")


def _slow_workers(rig: Rig) -> None:
    rig.reset()
    rig.publish("free", "1")
    rig.publish("free", "2")
    rig.claim("A")
    rig.ack("free", "A")
    _lease(rig, 8, rig.now_ms - SLOW_MS)
    rig.expect(rig.claim("B") == (b"free", b"2"), "groups leased by slow workers hide the free group")
    rig.expect(rig.claim("C") is None, "a leased group was claimed")


def _client_clock_moves_nothing(rig: Rig) -> None:
    rig.reset()
    groups = _lease(rig, 12)
    scores = [rig.score(group) for group in groups]
    rig.expect(rig.claim("fast", now_ms=rig.now_ms + AHEAD_MS) is None, "a leased group was claimed")
    rig.expect([rig.score(group) for group in groups] == scores, "a client's clock has moved others' deadlines")


def _behind_locked(rig: Rig, locked: int) -> None:
    """A free group that comes right behind a head and full pages of locked groups."""
    rig.reset()
    rig.foreign("crowd", size=locked, tier=0, score_ms=rig.now_ms - 500, visibility_ms=30_000, messages=1)
    rig.publish("free", "m")
    rig.foreign("set-entry", group="free", tier=0, score_ms=rig.now_ms - 400)
    rig.expect(rig.claim("A") == (b"free", b"m"), f"a free group behind {locked} locked ones is not found")
    rig.wait(30_002)
    served: set[bytes] = set()
    while (got := rig.claim("B")) is not None and len(served) <= locked:
        served.add(got[0])
    rig.expect(len(served) == locked + 1, f"after the leases {len(served)} of {locked + 1} groups come back")


def _served_goes_behind(rig: Rig) -> None:
    rig.reset()
    for group in ("a", "b"):
        rig.publish(group, "1")
        rig.publish(group, "2")
    rig.claim("A")
    rig.ack("a", "A")
    rig.expect(rig.claim("B") == (b"b", b"1"), "a served group does not go behind one that waits")


def check_e12(rig: Rig) -> None:
    """A claim goes on behind entries whose lists are gone, and takes their prio fields with them."""
    lost = [f"gone{number:02}" for number in range(24)]
    for group in lost:
        rig.publish(group, "m", priority=2)
    for group in lost:
        rig.raw("DEL", rig.key("q", group))
    rig.publish("live", "m", priority=2)
    rig.expect(rig.claim("A") == (b"live", b"m"), "a claim answers nil though a live group follows stale entries")
    rig.expect(set(rig.state().prio) == {b"live"}, "the prio field of a stale entry stays")
    rig.publish("gone00", "n", priority=4)
    rig.expect(rig.tiers("gone00") == [4], "the next publish keeps the priority of a stale entry")
    rig.drain()
    rig.expect_empty()


def check_e13(rig: Rig) -> None:
    """A broken key takes its own group out and no other; a missing right takes out none."""
    _broken_list(rig)
    _broken_lock(rig)
    _no_right_to_look(rig)


def _broken_list(rig: Rig) -> None:
    rig.reset()
    for group in ("a", "b", "c"):
        rig.publish(group, "m")
    rig.raw("DEL", rig.key("q", "a"))
    rig.raw("SET", rig.key("q", "a"), "no list")
    claimed = rig.do("claim", token="A")
    rig.expect(not codes(claimed), "one list of another type stops every claim")
    rig.expect(rig.claim("B") == (b"c", b"m"), "the claim after it does not go on")
    rig.expect(rig.tiers("a") == [], "the broken group is still in the index")
    rig.raw("DEL", rig.key("q", "a"))
    rig.publish("a", "n")
    rig.expect(rig.claim("C") == (b"a", b"n"), "the group does not flow again once its key is mended")


def _broken_lock(rig: Rig) -> None:
    rig.reset()
    for group in ("a", "b"):
        rig.publish(group, "m")
    rig.raw("HSET", rig.key("lock", "a"), "field", "value")
    rig.raw("PEXPIRE", rig.key("lock", "a"), 5000)
    rig.expect(rig.claim("A") == (b"b", b"m"), "a lock of another type does not hold while it has a TTL")
    rig.raw("PERSIST", rig.key("lock", "a"))
    rig.expect(rig.claim("B") == (b"a", b"m"), "a lock of another type without TTL blocks its group for ever")
    rig.expect((rig.ack("a", "B"), rig.ack("b", "A")) == (1, 1), "an ack is refused")
    rig.expect_empty()


def _no_right_to_look(rig: Rig) -> None:
    rig.reset()
    for number in range(12):
        rig.publish(f"g{number}", "m", priority=number % 5)
    before = rig.state()
    poor = rig.user("without-lindex", "~*", "+@all", "-lindex")
    for token in ("A", "B"):
        reply = poor.do("claim", token=token)
        rig.expect(rig.unchanged(before), "a claim without the right to LINDEX has dropped groups from the index")
        rig.expect(codes(reply), "a claim without the right to LINDEX is no error")
    rig.expect(len(rig.drain()) == 12, "not every message comes out afterwards")
    rig.expect_empty()
