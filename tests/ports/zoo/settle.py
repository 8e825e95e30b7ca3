"""Ports whose ack, nack or extend is wrong."""

from __future__ import annotations

from typing import Any

from tests.ports.zoo.base import NacksInSteps, Port, Request, untag


class AckWithoutFence(Port):
    """Acks whatever token it is given."""

    of_design = "ack-without-fence"
    rejected_by = ("SETTLE-1a", "SETTLE-1c", "SETTLE-1e", "SETTLE-2a", "FAIL-3a")


class AckAfterExpiry(Port):
    """Remembers its leases itself, and acks one that has ended."""

    rejected_by = ("SETTLE-1b", "TIME-3b", "ACK-5a")

    def __init__(self) -> None:
        super().__init__()
        self.mine: set[bytes] = set()

    def claim(self, request: Request) -> Any:
        if "argv" not in request:
            self.mine.add(untag(request["token"]))
        return super().claim(request)

    def ack(self, request: Request) -> Any:
        if "argv" not in request and (token := untag(request["token"])) in self.mine:
            self.client.set(self.key("lock", untag(request["group"])), token, px=1000, nx=True)
        return super().ack(request)


class LeavesPrio(Port):
    """Leaves the prio field when it drains a group."""

    of_design = "prio-kept-on-drain"
    rejected_by = ("KEYS-4a", "ACK-4a", "PUBLISH-4b")


class ForgetsThePark(Port):
    """Takes a nack with a delay for one without."""

    rejected_by = ("NACK-3a", "CLAIM-2b", "TIME-3c")

    def nack(self, request: Request) -> Any:
        return super().nack({**request, "delay_ms": 0})


class ParksWithoutLock(Port):
    """Parks by the score alone, so that a caller whose clock is ahead takes the group."""

    of_design = "park-without-lock"
    rejected_by = ("NACK-4a", "NACK-3a")


class ParksWithItsToken(Port):
    """Leaves the token in the lock of a parked group, so that it still settles."""

    of_design = "park-same-token"
    rejected_by = ("NACK-4a", "SETTLE-4a")


class NackToTail(Port):
    """A message that is given back goes behind the others of its group."""

    of_design = "nack-to-tail"
    rejected_by = ("NACK-1a",)


class NackInTwoSteps(NacksInSteps):
    """Looks at the lock in one round trip, and writes in others."""

    of_design = "two-step-nack"
    rejected_by = ("E1-2",)


class ExtendsLockOnly(Port):
    """Renews the lock and not the score."""

    of_design = "extend-only-lock"
    rejected_by = ("EXTEND-1a", "EXTEND-3a")


class Hesitant(Port):
    """Declares that it can renew a lease, and answers that it cannot."""

    rejected_by = ("EXTEND-1a", "EXTEND-2b")
    kind = "unsupported"

    def answer(self, request: Request) -> Request:
        return {"unsupported": "not yet"} if request["op"] == "extend" else super().answer(request)
