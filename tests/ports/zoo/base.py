"""A right port over redis-py, small enough to be bent: a wrong port of this folder is this one with a method changed.

It has the package's scripts, or those of a design of ``tests/designs``, and keeps nothing between calls.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Generator
from typing import Any, ClassVar

import redis

from model.operation import CAPABILITIES
from tests.support.designs import Design, changed, designs, load_nack, package_scripts

Request = dict[str, Any]


class Unsupported(Exception):
    """The port has no such operation."""


class Port:
    """The right one. A wrong port overrides what it gets wrong."""

    capabilities: ClassVar[tuple[str, ...]] = CAPABILITIES
    of_design: ClassVar[str] = ""
    """The design whose scripts it has; none: the package's."""
    rejected_by: ClassVar[tuple[str, ...]] = ()
    """The cases of the spec that convict it."""
    kind: ClassVar[str] = ""
    """Of the failure, where it is none of reply, keys and check."""

    def __init__(self) -> None:
        scripts = package_scripts()
        if self.of_design:
            scripts = changed(design(self.of_design), scripts)
        self.scripts = {file.removesuffix(".lua"): source for file, source in scripts.items()}

    # The protocol

    def run(self) -> None:
        """Answers standard input, a line at a time."""
        for line in sys.stdin:
            request = json.loads(line)
            sys.stdout.write(json.dumps({"id": request["id"], **self.answer(request)}) + "\n")
            sys.stdout.flush()

    def answer(self, request: Request) -> Request:
        """The answer to one request."""
        try:
            return {"ok": getattr(self, request["op"])(request)}
        except Unsupported as error:
            return {"unsupported": str(error)}
        except redis.RedisError as error:
            return {"error": {"code": str(error).split(" ")[0], "message": str(error)}}

    def hello(self, request: Request) -> Request:
        """What the port says of itself."""
        return {
            "protocol": 1,
            "name": type(self).__name__,
            "language": "Python",
            "version": "1",
            "capabilities": list(self.capabilities),
            "takes_now_ms": True,
        }

    def open(self, request: Request) -> None:
        """Connects."""
        self.client: Any = redis.Redis.from_url(request["url"])
        self.prefix = untag(request["prefix"])

    def close(self, request: Request) -> None:
        """Lets go."""
        self.client.close()

    # The operations

    def publish(self, request: Request) -> Any:
        """One message."""
        return self.call("publish", request, "group", "payload", "priority", "score_ms")

    def claim(self, request: Request) -> Any:
        """The next group."""
        reply = self.call("claim", request, "now_ms", "visibility_ms", "token", "candidates", "min_priority")
        return reply and {"group": tag(reply[0]), "payload": tag(reply[1])}

    def ack(self, request: Request) -> Any:
        """Done."""
        return self.call("ack", request, "group", "token", "now_ms")

    def nack(self, request: Request) -> Any:
        """Given back."""
        return self.call("nack", request, "group", "token", "now_ms", "delay_ms")

    def extend(self, request: Request) -> Any:
        """Renewed."""
        return self.call("extend", request, "group", "token", "now_ms", "visibility_ms")

    def call(self, script: str, request: Request, *names: str) -> Any:
        """Calls a script with the prefix and these arguments, or with the raw ARGV."""
        if "argv" in request:
            return self.evaluate(script, *(untag(value) for value in request["argv"]))
        return self.evaluate(script, self.prefix, *(encode(request[name]) for name in names))

    def evaluate(self, script: str, *argv: bytes) -> Any:
        """Has the server run a script."""
        return self.client.eval(self.scripts[script], 1, self.prefix + b":prio", *argv)

    def key(self, kind: str, group: bytes) -> bytes:
        """A key of a group."""
        return b"%s:%s:%s" % (self.prefix, kind.encode(), group)


class NacksInSteps(Port):
    """With the nack of its design, which is no script but round trips. Its time comes from outside, or the runner."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = load_nack(design(self.of_design))

    def nack(self, request: Request) -> Any:
        if "argv" in request or not isinstance(request["delay_ms"], int):
            raise Unsupported("what is no integer")
        now_ms = request["time_ms"] if request["now_ms"] is None else request["now_ms"]
        lease = untag(request["group"]), untag(request["token"])
        return finished(self.steps(self.client, self.prefix, *lease, now_ms, request["delay_ms"]))


def design(name: str) -> Design:
    """The design of that name."""
    (found,) = (design for design in designs() if design.name == name)
    return found


def finished(steps: Generator[str, None, int]) -> int:
    """What steps return when all of them are taken."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return int(end.value)


def encode(value: Any) -> bytes:
    """An argument as a script takes it."""
    return b"" if value is None else b"%d" % value if isinstance(value, int) else untag(value)


def untag(value: Any) -> bytes:
    """The bytes of a tagged value."""
    return base64.b64decode(value["b64"]) if "b64" in value else value["utf8"].encode()


def tag(data: bytes) -> dict[str, str]:
    """Bytes as a tagged value."""
    return {"b64": base64.b64encode(data).decode()}
