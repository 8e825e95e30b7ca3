"""E6 to E9, E11 and E16: priorities, tiers, and where a group starts."""

from __future__ import annotations

from collections.abc import Callable

from model.operation import Error
from tests.faults.rig import Rig

BAD_INTEGERS = ("2.5", "nan", "inf", "-0", "+1", "01", "1e1", "0x1", "", " 1", "1 ", "one")
BAD_CLAIMS = {
    "min_priority": ("0.5", "nan", "-0", "+1", "1e1", "", "0x1"),
    "K": ("-1", "0", "100", "8.0", "08", ""),
    "px": ("0", "-1", "abc", "1e3", "0.5", "1000000000000000", ""),
    "token": ("", "parked"),
    "now": ("-1", "1.5", "nan", "1e3", "1000000000000000"),
}
NAMES = {"K": "candidates", "px": "visibility_ms", "now": "now_ms"}
COST_OF_CLAIM = 18
"""Commands of a claim that meets no locked or stale entry: 17, and TIME."""


def check_e6(rig: Rig) -> None:
    """A priority that is no integer is refused with nothing written; any integer is clamped."""
    for priority in BAD_INTEGERS:
        reply = rig.do("publish", group="g", payload="m", priority=priority)
        if not isinstance(reply, Error):
            rig.expect(rig.claim("A", min_priority=0), f"priority {priority!r}: accepted, and no claim reads its tier")
        refused = isinstance(reply, Error) and reply.code == "REDISQ_BADARG" and "priority" in reply.arguments
        rig.expect(refused, f"priority {priority!r} is not refused by name")
        rig.expect_empty()
    for priority, tier in (("-7", 0), ("0", 0), ("3", 3), ("4", 4), ("5", 4), ("99999999999999999999", 4)):
        rig.reset()
        rig.publish("g", "m", priority=priority)
        rig.expect(rig.tiers("g") == [tier], f"priority {priority} is not clamped to {tier}")


def check_e7(rig: Rig) -> None:
    """A bad argument of claim is refused by name with nothing written; min_priority is clamped before any work."""
    rig.publish("g", "m")
    ran = rig.commands(lambda: rig.claim("A", min_priority=-20_000))
    rig.expect(ran.total() <= COST_OF_CLAIM, f"min_priority -20000 makes the claim run {ran.total()} commands")
    rig.reset()
    rig.publish("g", "m")
    before = rig.state()
    for argument, values in BAD_CLAIMS.items():
        for value in values:
            if argument == "now" and not value:
                continue
            reply = rig.do("claim", **{"token": "A", NAMES.get(argument, argument): value})
            refused = isinstance(reply, Error) and reply.code == "REDISQ_BADARG" and argument in reply.arguments
            rig.expect(refused, f"{argument} {value!r} is not refused by name")
            rig.expect(rig.unchanged(before), f"{argument} {value!r} was refused after a write")
    rig.expect(rig.claim("A", min_priority=5) is None, "min_priority 5 is not clamped to 4")
    rig.expect(rig.claim("A", min_priority=-(10**9)) == (b"g", b"m"), "a negative min_priority is not clamped to 0")


def check_e8(rig: Rig) -> None:
    """Two queues whose prefixes the scripts take, and which share a key: neither can be relied on."""
    first, second = rig.other(b"p"), rig.other(b"p:q")
    first.publish("lock:y", "1")
    second.publish("y", "2")
    rig.expect(second.key("lock", "y") == first.key("q", "lock:y"), "the two queues share no key")
    taken = second.claim("A")
    left = first.claim("B")
    rig.expect((taken, left) == ((b"y", b"2"), (b"lock:y", b"1")), f"they collide: {taken} and {left}")


def check_e9(rig: Rig) -> None:
    """Of equal scores the lower tier wins, and within a tier the smaller group in bytes."""
    order = [(b"\x01", 0), (b"Z", 0), (b"a", 0), (b"aa", 0), (b"\xff", 0), (b"b", 1), (b"A", 4)]
    for group, tier in reversed(order):
        rig.publish(group, "m", priority=tier)
    got = [rig.claim(f"t{number}") for number in range(len(order))]
    rig.expect([each and each[0] for each in got] == [group for group, _ in order], f"ties are broken otherwise: {got}")
    rig.reset()
    rig.publish("low", "m", priority=0)
    rig.publish("high", "m", priority=4)
    rig.expect(rig.claim("A", min_priority=1) == (b"high", b"m"), "min_priority does not serve the high tier first")


def check_e11_default(rig: Rig) -> None:
    """By default each new group comes before every served one, for as long as new ones come."""
    served = _stream(rig, 200, score_ms=0)
    rig.expect(b"old" not in served, f"the served group got {served.count(b'old')} of 200 claims")


def check_e11(rig: Rig) -> None:
    """A new group scored by its arrival waits behind the served ones, which bounds their wait."""
    served = _stream(rig, 40, score_ms=None)
    rig.expect(b"old" in served[:1], "a stream of new groups starves a served one, although scored by arrival")
    rig.expect(served.count(b"old") >= 1, "the served group is shut out")
    rig.reset()
    for group in ("c", "a", "b"):
        rig.publish(group, "m", score_ms=None)
        rig.wait(1)
    order = [rig.claim(f"t{number}") for number in range(3)]
    rig.expect([each and each[0] for each in order] == [b"c", b"a", b"b"], "groups scored by arrival come out of order")


def _stream(rig: Rig, claims: int, score_ms: int | None) -> list[bytes]:
    """Who is served when one new group is published for each claim, beside a group that was served before."""
    for number in range(claims + 1):
        rig.publish("old", f"{number}")
    rig.claim("A")
    rig.ack("old", "A")
    served = []
    for number in range(claims):
        rig.wait(1)
        rig.publish(f"new{number:03}", "m", score_ms=score_ms)
        group, _ = rig.claim("B") or (b"", b"")
        served.append(group)
        rig.ack(group, "B")
    return served


# E16: states of group g in tier 2, each with its messages in order; token A holds it where it is leased.


def _fresh(rig: Rig) -> None:
    for payload in ("1", "2", "3"):
        rig.publish("g", payload, priority=2)


def _served(rig: Rig) -> None:
    rig.publish("g", "0", priority=2)
    _fresh(rig)
    rig.claim("Z")
    rig.ack("g", "Z")


def _leased(rig: Rig) -> None:
    _fresh(rig)
    rig.claim("A")


def _last_leased(rig: Rig) -> None:
    rig.publish("g", "3", priority=2)
    rig.claim("A")


def _expired(rig: Rig) -> None:
    _fresh(rig)
    rig.claim("A", visibility_ms=100)
    rig.wait(101)


def _parked(rig: Rig) -> None:
    _leased(rig)
    rig.nack("g", "A", delay_ms=5000)


def _retried(rig: Rig) -> None:
    _leased(rig)
    rig.nack("g", "A")


def _drained(rig: Rig) -> None:
    _last_leased(rig)
    rig.ack("g", "A")


STATES: dict[str, Callable[[Rig], None]] = {
    "fresh": _fresh,
    "served": _served,
    "leased": _leased,
    "leased with one message left": _last_leased,
    "expired": _expired,
    "parked": _parked,
    "retried": _retried,
    "drained": _drained,
}
FIELDS = (None, "2.5", "9")
"""What becomes of the field: it is deleted, or holds this."""
NEXT: dict[str, Callable[[Rig], object]] = {
    "publish": lambda rig: rig.publish("g", "4", priority=4),
    "claim": lambda rig: rig.claim("B"),
    "ack": lambda rig: rig.ack("g", "A"),
    "nack": lambda rig: rig.nack("g", "A"),
    "park": lambda rig: rig.nack("g", "A", delay_ms=7000),
    "extend": lambda rig: rig.extend("g", "A"),
}


def check_e16(rig: Rig) -> None:
    """A `prio` field that is lost or spoilt, in whatever state, never puts its group into a second tier."""
    for state in STATES:
        for field in FIELDS:
            for name in NEXT:
                if not (rig.old and name == "extend"):
                    _lost_field(rig, state, field, name)
    _list_and_field_lost(rig)


def _lost_field(rig: Rig, state: str, field: str | None, name: str) -> None:
    rig.reset()
    STATES[state](rig)
    if field is None:
        rig.foreign("drop-prio", group="g")
    else:
        rig.foreign("set-prio", group="g", value=field)
    had, tier = rig.messages("g"), 4 if state == "drained" else 2
    where = f"{state}, field {'deleted' if field is None else repr(field)}, then {name}"
    reply = NEXT[name](rig)
    expected = [*had, *([b"4"] if name == "publish" else [])]
    if name == "ack" and reply == 1:
        del expected[0]
    rig.expect(rig.messages("g") == expected, f"{where}: the list is wrong")
    rig.expect(rig.tiers("g") == ([tier] if expected else []), f"{where}: the group is in tiers {rig.tiers('g')}")
    rig.expect(not rig.state().strays, f"{where}: a tier that no claim reads: {rig.state().strays}")
    if expected and name in ("publish", "ack", "nack", "park", "extend") and reply:
        rig.expect(rig.state().prio == {b"g": b"%d" % tier}, f"{where}: the field is not written back")
    rig.publish("g", "5", priority=1)
    at = tier if expected else rig.state().tier_of(b"g")
    rig.expect(rig.tiers("g") == [at], f"{where}, then publish: the group is in tiers {rig.tiers('g')}")
    rig.expect([payload for _, payload in rig.drain()] == [*expected, b"5"], f"{where}: not every message comes out")
    rig.expect_empty()


def _list_and_field_lost(rig: Rig) -> None:
    """The one way to two entries: a claim removes the old one after the drain."""
    rig.reset()
    _fresh(rig)
    rig.raw("DEL", rig.key("q", "g"))
    rig.foreign("drop-prio", group="g")
    rig.publish("g", "n", priority=4)
    rig.expect(4 in rig.tiers("g"), "the new message is not in its tier")
    rig.expect([payload for _, payload in rig.drain()] == [b"n"], "the new message does not come out once")
    rig.expect(rig.drain() == [], "the old entry delivers something")
    rig.expect_empty()
