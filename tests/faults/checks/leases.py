"""E1, E2, E4, E10 and E14: who holds a group, and until when."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.faults.rig import Rig, needs_exact_clock


def check_e1(rig: Rig) -> None:
    """A nack whose lease moves on between two of its round trips changes nothing for the new holder."""
    for delay_ms in (0, 500):
        for index in itertools.count():
            if not _moves_on(rig, index, delay_ms):
                break
    for index in itertools.count():
        if not _acked_meanwhile(rig, index):
            break


def _moves_on(rig: Rig, index: int, delay_ms: int) -> bool:
    """A's lease ends and B claims before the command `index` of A's nack; False if it sends fewer commands."""
    rig.reset()
    rig.publish("g", "m")
    rig.claim("A", visibility_ms=100)

    def reclaim() -> None:
        rig.wait(101)
        rig.expect(rig.claim("B") == (b"g", b"m"), "B does not get the message after A's lease")

    slow, client = rig.interrupted(index, reclaim)
    slow.nack("g", "A", delay_ms=delay_ms)
    if not client.fired:
        rig.expect(index > 0, "the nack sent no command")
        return False
    rig.expect(rig.claim("C") is None, "B and C hold one group at once: A's nack has freed B's lock")
    rig.expect(rig.admin.get(rig.key("lock", "g")) == b"B", "A's nack has replaced B's token")
    rig.expect(rig.ack("g", "B") == 1, "B's ack is refused")
    rig.expect_empty()
    return True


def _acked_meanwhile(rig: Rig, index: int) -> bool:
    """A's own ack comes before the command `index` of A's nack."""
    rig.reset()
    rig.publish("g", "m")
    rig.claim("A")
    slow, client = rig.interrupted(index, lambda: rig.expect(rig.ack("g", "A") == 1, "A's ack is refused"))
    slow.nack("g", "A")
    if client.fired:
        rig.expect(rig.tiers("g") == [], "the nack has put a drained group back into `ready`")
    return client.fired


def check_e2(rig: Rig) -> None:
    """The token of a parked group is dead."""
    rig.publish("g", "m")
    rig.claim("A")
    rig.expect(rig.nack("g", "A", delay_ms=60_000) == 1, "the holder's nack is refused")
    parked = rig.admin.get(rig.key("lock", "g")), rig.score("g")
    rig.expect(rig.ack("g", "A") == 0, "a settled lease acks: the parked message is gone")
    rig.expect(rig.nack("g", "A") == 0, "a settled lease frees the parked group")
    rig.expect(rig.extend("g", "A", visibility_ms=90_000) == 0, "a settled lease renews the park")
    rig.expect((rig.admin.get(rig.key("lock", "g")), rig.score("g")) == parked, "the park has changed")
    rig.expect(rig.messages("g") == [b"m"], "the parked message is gone")
    rig.expect(rig.claim("B") is None, "a parked group was claimed")
    rig.wait(60_001)
    rig.expect(rig.claim("B") == (b"g", b"m"), "the message does not come back after its park")
    rig.expect(rig.ack("g", "B") == 1, "the new holder's ack is refused")
    rig.expect_empty()


@needs_exact_clock
def check_e4(rig: Rig) -> None:
    """A lease and a park live through the millisecond of their deadline, and a score is due in its own."""
    for at_ms, claimed, settled in ((999, False, 1), (1000, False, 1), (1001, True, 0)):
        rig.reset()
        rig.publish("g", "m")
        rig.claim("A", visibility_ms=1000)
        rig.wait(at_ms)
        rig.expect((rig.claim("B") is not None) == claimed, f"at {at_ms} of 1000 ms the claim is wrong")
        rig.expect(rig.ack("g", "A") == settled, f"at {at_ms} of 1000 ms the holder's ack is wrong")
    for at_ms, claimed in ((999, False), (1000, False), (1001, True)):
        rig.reset()
        rig.publish("g", "m")
        rig.claim("A")
        rig.nack("g", "A", delay_ms=1000)
        rig.wait(at_ms)
        rig.expect((rig.claim("B") is not None) == claimed, f"at {at_ms} of 1000 ms parked the claim is wrong")
    rig.reset()
    rig.publish("g", "1")
    rig.publish("g", "2")
    rig.claim("A")
    rig.ack("g", "A")
    rig.expect(rig.claim("B") == (b"g", b"2"), "a group is not due in the millisecond of its score")
    if rig.old:
        return
    for at_ms, renewed in ((1000, 1), (1001, 0)):
        rig.reset()
        rig.publish("g", "m")
        rig.claim("A", visibility_ms=1000)
        rig.wait(at_ms)
        rig.expect(rig.extend("g", "A", visibility_ms=1000) == renewed, f"at {at_ms} of 1000 ms the extend is wrong")


def check_e10(rig: Rig) -> None:
    """A nack without delay is served before every group that was served; with a delay the others come first."""
    rig.publish("bad", "poison")
    for number in range(60):
        rig.publish("good", f"{number}")
    rig.claim("A")
    rig.expect(rig.claim("B") == (b"good", b"0"), "the good group is not served while the bad one is held")
    rig.ack("good", "B")
    rig.wait(1)
    rig.nack("bad", "A")
    served = []
    for number in range(50):
        group, _ = rig.claim(f"C{number}") or (b"", b"")
        served.append(group)
        rig.wait(1)
        rig.nack(group, f"C{number}")
    rig.expect(served == [b"bad"] * 50, f"a retry at once did not come first: {served}")
    rig.claim("D")
    rig.nack("bad", "D", delay_ms=1000)
    rig.expect(rig.claim("E") == (b"good", b"1"), "with the bad group parked the good one is not served")


def check_e14(rig: Rig) -> None:
    """A lock that lost its TTL ends with the lease it was set for."""
    _without_ttl(rig, lambda: rig.raw("PERSIST", rig.key("lock", "g")), "PERSIST")

    def restored() -> None:
        dump = rig.admin.dump(rig.key("lock", "g"))
        rig.raw("RESTORE", rig.key("lock", "g"), 0, dump, "REPLACE")

    _without_ttl(rig, restored, "RESTORE")
    rig.reset()
    rig.publish("g", "m")
    rig.claim("A")
    rig.nack("g", "A", delay_ms=1000)
    rig.raw("PERSIST", rig.key("lock", "g"))
    rig.wait(1001)
    rig.expect(rig.claim("B") == (b"g", b"m"), "a park whose lock lost its TTL blocks its group for ever")


def _without_ttl(rig: Rig, lose: Callable[[], object], how: str) -> None:
    rig.reset()
    rig.publish("g", "m")
    rig.claim("A", visibility_ms=1000)
    lose()
    rig.expect(rig.admin.pttl(rig.key("lock", "g")) == -1, f"{how} left a TTL")
    rig.wait(900)
    rig.expect(rig.claim("B") is None, "the lease ended early")
    rig.wait(101)
    rig.expect(rig.claim("B") == (b"g", b"m"), f"after {how} the lock blocks its group for ever")
    rig.expect(rig.ack("g", "A") == 0, "the lease that ended settles")
    rig.expect(rig.ack("g", "B") == 1, "the new holder's ack is refused")
    rig.expect_empty()
