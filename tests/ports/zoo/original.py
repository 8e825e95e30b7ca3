"""A right port of the original design alone: its scripts, a nack of several round trips, and the caller's clock.

It conforms at level core. At level full it is told which corrections it lacks.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.ports.zoo.base import NacksInSteps, Request, Unsupported


class Original(NacksInSteps):
    """``now`` comes from outside; publish has no score, no key is named, nothing is renewed, no argument is checked."""

    capabilities: ClassVar[tuple[str, ...]] = ()
    of_design = "original"

    def publish(self, request: Request) -> Any:
        return self.call("publish", request, "group", "payload", "priority")

    def extend(self, request: Request) -> Any:
        raise Unsupported("a lease cannot be renewed")

    def answer(self, request: Request) -> Request:
        if "argv" in request or request.get("now_ms", 0) is None:
            return {"unsupported": "the caller gives every argument, and the time"}
        return super().answer(request)

    def evaluate(self, script: str, *argv: bytes) -> Any:
        return self.client.eval(self.scripts[script], 0, *argv)
