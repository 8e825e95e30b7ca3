"""A right port over redis-py, small enough to be bent: a wrong port of this folder is this one with a method changed.

It calls the package's scripts by raw ARGV, and keeps nothing between calls.
"""

from __future__ import annotations

import base64
import json
import sys
from importlib.resources import files
from typing import Any, ClassVar

import redis

Request = dict[str, Any]
LUA = files("redisq") / "lua"
SCRIPTS = {
    name: (LUA / f"{name}.lua").read_text(encoding="utf-8") for name in ("publish", "claim", "ack", "nack", "extend")
}
ALL = (
    *("atomic-nack", "park-revokes", "server-clock", "window-repair", "drain-at-maxmemory", "checked-arguments"),
    *("arrival-order", "safe-write-order", "tier-recovery", "extend"),
)


class Unsupported(Exception):
    """The port has no such operation."""


class Port:
    """The right one. A wrong port overrides what it gets wrong."""

    capabilities: ClassVar[tuple[str, ...]] = ALL
    edits: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Of the scripts: which, a text that stands in it once, and what stands there instead."""

    def __init__(self) -> None:
        self.scripts = dict(SCRIPTS)
        for script, old, new in self.edits:
            assert self.scripts[script].count(old) == 1, f"{script}: {old}"
            self.scripts[script] = self.scripts[script].replace(old, new)

    # The protocol

    def run(self) -> None:
        """Answers standard input, a line at a time."""
        for line in sys.stdin:
            request = json.loads(line)
            self.send({"id": request["id"], **self.answer(request)})

    def send(self, answer: Request) -> None:
        """Writes one answer."""
        sys.stdout.write(json.dumps(answer) + "\n")
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
        self.client = redis.Redis.from_url(request["url"])
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
        argv = [untag(value) for value in request["argv"]] if "argv" in request else None
        if argv is None:
            argv = [self.prefix, *(encode(request[name]) for name in names)]
        return self.client.eval(self.scripts[script], 1, self.prefix + b":prio", *argv)  # type: ignore[no-untyped-call]

    def key(self, kind: str, group: bytes) -> bytes:
        """A key of a group."""
        return b"%s:%s:%s" % (self.prefix, kind.encode(), group)


def encode(value: Any) -> bytes:
    """An argument as a script takes it."""
    return b"" if value is None else b"%d" % value if isinstance(value, int) else untag(value)


def untag(value: Any) -> bytes:
    """The bytes of a tagged value."""
    return base64.b64decode(value["b64"]) if "b64" in value else value["utf8"].encode()


def tag(data: bytes) -> dict[str, str]:
    """Bytes as a tagged value."""
    return {"b64": base64.b64encode(data).decode()}
