"""Ports whose claim is wrong."""

from __future__ import annotations

from typing import Any

from tests.ports.zoo.base import Port, Request, tag


class SecondClaim(Port):
    """Where nothing is free it breaks the locks, and gives a group out that is in flight."""

    rejected_by = ("CLAIM-7a", "FAIL-2a")

    def claim(self, request: Request) -> Any:
        reply = super().claim(request)
        if reply is None:
            for lock in self.client.scan_iter(self.key("lock", b"*")):
                self.client.delete(lock)
            reply = super().claim({**request, "now_ms": 10**14})
        return reply


class ExpiryOffByOne(Port):
    """A lease lasts a millisecond less than it was asked for."""

    of_design = "deadline-off-by-one"
    rejected_by = ("TIME-3a", "CLAIM-11a", "ACK-5a")


class DueExclusive(Port):
    """A group is due only after its score has passed."""

    of_design = "due-bound-exclusive"
    rejected_by = ("CLAIM-2a", "PUBLISH-6b")


class TieToHigherTier(Port):
    """Of equal scores the higher tier wins."""

    of_design = "tie-to-higher-tier"
    rejected_by = ("CLAIM-4a", "CLAIM-4b")


class IgnoresMinPriority(Port):
    """Looks at every tier."""

    of_design = "min-priority-ignored"
    rejected_by = ("CLAIM-6a", "PUBLISH-5a")


class LeavesItDue(Port):
    """Leaves the group that it leases due, so that the locked ones fill every page."""

    of_design = "score-without-px"
    rejected_by = ("CLAIM-11a", "CLAIM-11b")


class OneToken(Port):
    """Has one token for all its leases."""

    rejected_by = ("SETTLE-1a",)

    def claim(self, request: Request) -> Any:
        reply = super().claim({**request, "token": tag(b"worker-1")})
        return reply and {**reply, "token": tag(b"worker-1")}


class OneWindow(Port):
    """Looks at one page only."""

    of_design = "one-window"
    rejected_by = ("CLAIM-14a", "CLAIM-17b")


class SetFirst(Port):
    """Begins with SET, which a full server refuses."""

    of_design = "set-first"
    rejected_by = ("E5-1",)
