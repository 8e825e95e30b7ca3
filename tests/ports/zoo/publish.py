"""Ports whose publish is wrong."""

from __future__ import annotations

from typing import Any

from tests.ports.zoo.base import Port, Request, tag, untag


class Lifo(Port):
    """Delivers the newest message of a group first."""

    of_design = "lpush"
    rejected_by = ("PUBLISH-1a", "CLAIM-9a")


class DecodesText(Port):
    """Takes payloads for UTF-8."""

    rejected_by = ("KEYS-1a",)

    def publish(self, request: Request) -> Any:
        if "argv" not in request:
            request = {**request, "payload": tag(untag(request["payload"]).decode(errors="replace").encode())}
        return super().publish(request)


class DropsEmpty(Port):
    """Takes an empty payload for no message."""

    rejected_by = ("CLAIM-10a", "KEYS-1c")

    def publish(self, request: Request) -> Any:
        return 0 if "argv" not in request and not untag(request["payload"]) else super().publish(request)


class PublishesTwice(Port):
    """Sends a publish again, as after a lost reply."""

    rejected_by = ("PUBLISH-1a", "PUBLISH-1b")

    def publish(self, request: Request) -> Any:
        super().publish(request)
        return super().publish(request)


class DropsRepeats(Port):
    """Takes an equal payload for a repeated publish."""

    rejected_by = ("FAIL-1a", "ACK-1b")

    def publish(self, request: Request) -> Any:
        if "argv" not in request:
            held = self.client.lrange(self.key("q", untag(request["group"])), 0, -1)
            if untag(request["payload"]) in held:
                return len(held)
        return super().publish(request)


class LastPriority(Port):
    """The priority of the last publish counts."""

    of_design = "last-priority-wins"
    rejected_by = ("PUBLISH-4a",)


class WithoutNx(Port):
    """Writes the entry of a group that has one, so that a leased or parked group is due at once."""

    of_design = "zadd-without-nx"
    rejected_by = ("PUBLISH-3a",)


class FirstOfNow(Port):
    """Serves new groups in the order in which they came, at a score of now."""

    rejected_by = ("CLAIM-3a", "PUBLISH-2a")

    def publish(self, request: Request) -> Any:
        return super().publish(request if "argv" in request else {**request, "score_ms": None})


class PushesFirst(Port):
    """Stores the message before it is in the index."""

    of_design = "push-before-index"
    rejected_by = ("E15-2",)


class ArrivalInSeconds(Port):
    """Scores an arrival by a clock of whole seconds, so that ids decide who came first."""

    rejected_by = ("PUBLISH-6d",)

    def publish(self, request: Request) -> Any:
        if "argv" not in request and request["score_ms"] is None:
            request = {**request, "score_ms": request["time_ms"] // 1000 * 1000}
        return super().publish(request)
