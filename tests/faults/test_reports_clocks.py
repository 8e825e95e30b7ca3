"""Reports of clocks: of hosts that differ, of one that steps back, and of services that refuse TIME."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from model.operation import ARGV
from tests.faults.checks.histories import GROUPS
from tests.faults.judge import Control, Judge
from tests.faults.rig import Check, Rig, codes, needs_exact_clock

HOUR_MS = 3_600_000
SKEW_MS = 600_000
LEASE_MS = 500


@needs_exact_clock
def skewed_clients(rig: Rig) -> None:
    """B34, TIME-5: clients 20 minutes apart never hold one group at once; all is due after lease and skew."""
    for seed in range(6):
        rig.reset()
        history = Skewed(rig, seed)
        for _ in range(60):
            history.step()
        history.rig.wait(LEASE_MS + 2 * SKEW_MS + 1)
        got = []
        while (claimed := rig.claim("slow", now_ms=rig.now_ms - SKEW_MS)) is not None:
            got.append(claimed)
            rig.expect(rig.ack(claimed[0], "slow", now_ms=rig.now_ms - SKEW_MS) == 1, "an ack is refused")
        left = sum(map(len, history.stored.values()))
        rig.expect(len(got) == left, f"after lease and skew {len(got)} of {left} messages come out by a slow clock")
        rig.expect_empty()


class Skewed:
    """A random history of workers whose clocks are 10 minutes behind, right, and 10 minutes ahead."""

    def __init__(self, rig: Rig, seed: int) -> None:
        self.rig = rig
        self.random = Random(seed)
        self.stored: dict[bytes, list[bytes]] = {group: [] for group in GROUPS}
        self.held: dict[bytes, tuple[bytes, int]] = {}
        """By group: the token that settles it, and the last millisecond in which nobody else may have it."""

    def step(self) -> None:
        """One operation by one of them."""
        rig, pick = self.rig, self.random.choice
        now_ms = rig.now_ms + pick((-SKEW_MS, 0, SKEW_MS))
        token = b"%d" % self.random.getrandbits(40)
        word = pick(("publish", "claim", "claim", "settle", "settle", "wait"))
        if word == "publish":
            group = pick(GROUPS)
            rig.publish(group, token, score_ms=pick((0, now_ms)))
            self.stored[group].append(token)
        elif word == "claim" and (got := rig.claim(token, now_ms=now_ms, visibility_ms=LEASE_MS)) is not None:
            group = got[0]
            _, end_ms = self.held.get(group, (b"", -1))
            rig.expect(end_ms < rig.now_ms, f"{group!r} is held or parked until {end_ms}, and was claimed")
            self.held[group] = token, rig.now_ms + LEASE_MS
        elif word == "settle" and self.held:
            group = pick(sorted(self.held))
            self.settle(group, self.held[group][0], now_ms)
        elif word == "wait":
            rig.wait(pick((1, 100, 400)))

    def settle(self, group: bytes, token: bytes, now_ms: int) -> None:
        """An ack, a nack or a park by the last holder."""
        word = self.random.choice(("ack", "nack", "park"))
        if word == "ack" and self.rig.ack(group, token, now_ms=now_ms):
            self.stored[group].pop(0)
            del self.held[group]
        elif word == "nack" and self.rig.nack(group, token, now_ms=now_ms):
            del self.held[group]
        elif word == "park" and self.rig.nack(group, token, now_ms=now_ms, delay_ms=300):
            self.held[group] = token, self.rig.now_ms + 300


@needs_exact_clock
def stepped_back(rig: Rig) -> None:
    """B35, TIME-4: a server's clock that steps back an hour hides what was scored later until it catches up."""
    clock = rig.host.clock
    for payload in ("1", "2"):
        rig.publish("old", payload)
    rig.claim("A")
    rig.ack("old", "A")
    later_ms = rig.now_ms
    clock.set_ms(later_ms - HOUR_MS)
    rig.expect(rig.claim("B") is None, "a group scored by the later time is due by the earlier one")
    rig.publish("old", "3")
    rig.publish("new", "1")
    rig.expect(rig.claim("B") == (b"new", b"1"), "a new group does not flow")
    rig.expect(rig.ack("new", "B") == 1, "its ack is refused")
    clock.set_ms(later_ms)
    rig.expect([payload for _, payload in rig.drain()] == [b"2", b"3"], "not all comes out once the clock catches up")
    rig.expect_empty()


@needs_exact_clock
def revived(rig: Rig) -> None:
    """B35, TIME-4: a lock alive again after a step back is the last holder's; nobody shares the group."""
    rig.publish("g", "1")
    rig.claim("A", visibility_ms=1000)
    rig.wait(2000)
    rig.host.clock.set_ms(rig.now_ms - 1500, touch=())  # nobody has looked at the lock meanwhile
    rig.expect(rig.claim("B") is None, "the group is claimed though it is not due")
    fast = rig.claim("B", now_ms=rig.now_ms + HOUR_MS)
    rig.expect(fast is None, "the group is claimed while its lock is alive again")
    rig.expect(rig.ack("g", "A") == 1, "the last holder cannot settle under its own lock")
    rig.publish("g", "2")
    rig.claim("A", visibility_ms=1000)
    rig.wait(2000)
    rig.expect(rig.claim("B", visibility_ms=1000) == (b"g", b"2"), "the lease does not end")
    rig.host.clock.set_ms(rig.now_ms - 1500)
    rig.expect(rig.ack("g", "A") == 0, "a lease that was taken over settles after a step back")
    rig.expect(rig.ack("g", "B") == 1, "the holder's ack is refused after a step back")
    rig.expect_empty()


def without_time(rig: Rig) -> None:
    """B39, TIME-2: by a client's clock a user without TIME can do everything; by the server's, nothing is written."""
    poor = rig.user("without-time", "~*", "+@all", "-time")
    now_ms = rig.now_ms
    for group in ("a", "b"):
        for payload in ("1", "2"):
            poor.publish(group, payload, score_ms=now_ms)
    poor.expect(poor.claim("A", now_ms=now_ms) == (b"a", b"1"), "a claim with a client's clock fails")
    poor.expect(poor.extend("a", "A", now_ms=now_ms, visibility_ms=60_000) == 1, "an extend fails")
    poor.expect(poor.claim("B", now_ms=now_ms) == (b"b", b"1"), "a claim with a client's clock fails")
    poor.expect(poor.nack("b", "B", now_ms=now_ms, delay_ms=500) == 1, "a nack with a delay fails")
    before = rig.state()
    calls: dict[str, dict[str, Any]] = {
        "publish": {"group": "new", "payload": "m", "score_ms": None},
        "claim": {"token": "C"},
        "ack": {"group": "a", "token": "A"},
        "nack": {"group": "a", "token": "A", "delay_ms": 500},
        "extend": {"group": "a", "token": "A"},
    }
    for op in ARGV:
        reply = poor.do(op, **calls[op])
        rig.expect(
            codes(reply) and codes(reply) != "REDISQ_BADARG", f"{op} by the server's clock is no error of rights"
        )
        rig.expect(rig.unchanged(before), f"{op} has written something before it was refused")
    poor.expect(poor.ack("a", "A", now_ms=now_ms) == 1, "an ack with a client's clock fails")
    rig.expect(len(rig.drain()) == 3, "not every message comes out")
    rig.expect_empty()


CHECKS = [skewed_clients, stepped_back, revived, without_time]
CONTROLS = [
    Control(skewed_clients, "is held or parked until", "park-without-lock"),
    Control(skewed_clients, "is held or parked until", edits={"claim": ("  if held then\n", "  if held == px then\n")}),
    Control(stepped_back, "is due by the earlier one", "server-clock-ignored"),
    Control(
        revived, "claimed while its lock is alive", edits={"claim": ("  if held then\n", "  if held == px then\n")}
    ),
    Control(revived, "a lease that was taken over settles", "ack-without-fence"),
    Control(
        without_time,
        "claim answers",
        edits={"claim": ("if servers_clock then\n  local time", "if px then\n  local time")},
    ),
    Control(
        without_time,
        "ack has written something",
        edits={
            "ack": ("  if now == '' then\n", "  redis.call('DEL', lock)\n  if now == '' then\n"),
        },
    ),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_clocks(judge: Judge, check: Check) -> None:
    """B34, B35, B39: clocks that differ, step back or may not be asked."""
    judge.passes(check)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_clocks_undone(judge: Judge, control: Control) -> None:
    """Each of these checks finds the scripts that get it wrong."""
    judge.convicts(control)
