"""A right port of the original design alone: its scripts, a nack of several round trips, and the caller's clock.

It conforms at level core. At level full it is told which corrections it lacks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from tests.ports.zoo.base import Port, Request, Unsupported, encode, untag

SCRIPTS = Path(__file__).parents[2] / "designs" / "original"


class Original(Port):
    """``now`` comes from outside; publish has no score, nothing is renewed, no argument is checked."""

    capabilities: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__()
        self.scripts = {name: (SCRIPTS / f"{name}.lua").read_text() for name in ("publish", "claim", "ack")}

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "argv" in request or request.get("now_ms", 0) is None:
            raise Unsupported("the caller gives every argument, and the time")
        argv = [self.prefix, *(encode(request[name]) for name in names if name != "score_ms")]
        return self.client.eval(self.scripts[script], 0, *argv)  # type: ignore[no-untyped-call]

    def nack(self, request: Request) -> Any:
        """In four round trips."""
        if "argv" in request or not isinstance(request["now_ms"], int) or not isinstance(request["delay_ms"], int):
            raise Unsupported("the caller gives every argument, and the time")
        group, token, delay_ms = untag(request["group"]), untag(request["token"]), request["delay_ms"]
        lock = self.key("lock", group)
        if self.client.get(lock) != token:
            return 0
        tier = self.client.execute_command("HGET", self.prefix + b":prio", group) or b"0"  # type: ignore[no-untyped-call]
        due_ms = request["now_ms"] + delay_ms if delay_ms else 0
        self.client.zadd(self.prefix + b":ready:" + tier, {group: due_ms})
        if delay_ms:
            self.client.set(lock, token, px=delay_ms)
        else:
            self.client.delete(lock)
        return 1

    def extend(self, request: Request) -> Any:
        raise Unsupported("a lease cannot be renewed")
