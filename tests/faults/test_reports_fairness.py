"""Reports of who is served, and who never: priorities in a mix, and a message that always fails."""

from __future__ import annotations

from functools import partial

import pytest

from tests.faults.judge import Control, Judge
from tests.faults.rig import Check, Fault, Rig

CLAIMS = 100


def mix(rig: Rig) -> None:
    """B30, CLAIM-6: of 100 claims 20 take any priority; beside endless urgent work the low gets just those."""
    served = _serve(rig, [0 if number % 5 == 4 else 4 for number in range(CLAIMS)])
    rig.expect(served.count(b"low") == 20, f"the low priority got {served.count(b'low')} of 20 claims that take any")
    rig.expect(served.count(b"high") == 80, "a claim for high priorities was served something else, or nothing")


def strict(rig: Rig) -> None:
    """B30, NOT-2: claims for high priorities alone never serve the low ones, as documented."""
    served = _serve(rig, [4] * CLAIMS)
    rig.expect(served.count(b"low") == 0, "a claim for high priorities serves a low one")


def _serve(rig: Rig, min_priorities: list[int]) -> list[bytes]:
    """Who is served, while the group of high priority always has work and the others have enough."""
    rig.reset()
    for number in range(CLAIMS):
        rig.publish("low", f"{number}", priority=0)
    rig.publish("high", "first", priority=4)
    served = []
    for number, min_priority in enumerate(min_priorities):
        rig.wait(1)
        rig.publish("high", f"{number}", priority=4)
        group, _ = rig.claim("A", min_priority=min_priority) or (b"", b"")
        served.append(group)
        rig.ack(group, "A")
    return served


def poison(rig: Rig, delay_ms: int = 1000) -> None:
    """B27, NOT-4: with a delay a message that always fails does not come again before nine good groups were served."""
    rig.publish("bad", "poison")
    for number in range(9):
        rig.publish(f"good{number}", "1")
        rig.publish(f"good{number}", "2")
    served: list[bytes] = []
    for number in range(20):
        rig.wait(1)
        group, _ = rig.claim(f"t{number}") or (b"", b"")
        served.append(group)
        if group == b"bad":
            rig.nack(group, f"t{number}", delay_ms=delay_ms)
        elif group:
            rig.ack(group, f"t{number}")
    good = {b"good%d" % number for number in range(9)}
    rig.expect(set(served[:10]) == {b"bad", *good}, f"not every group was served in one round: {served}")
    rig.expect(served[10:19] == served[1:10], f"the second round is another one: {served}")
    rig.expect(rig.messages("bad") == [b"poison"], "the failing message is gone")


@pytest.mark.parametrize("check", [mix, strict, poison], ids=lambda check: check.__name__)
def test_fairness(judge: Judge, check: Check) -> None:
    """B27, B30: what a mix of priorities and a retry with a delay give to whom."""
    judge.passes(check)


CONTROLS = [
    Control(mix, "a claim for high|the low priority got", "min-priority-ignored"),
    Control(strict, "serves a low one", "min-priority-ignored"),
]


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_fairness_undone(judge: Judge, control: Control) -> None:
    """Each of these checks finds the scripts that get it wrong."""
    judge.convicts(control)


def test_poison_at_once_is_seen(judge: Judge) -> None:
    """The same check fails for a retry without a delay, which jumps the queue, as documented (E10)."""
    with judge.rig() as rig, pytest.raises(Fault, match="not every group was served in one round"):
        partial(poison, delay_ms=0)(rig)
