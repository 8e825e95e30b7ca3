"""The reference adapter: the Python library behind the port protocol. ``--async`` uses the asyncio transport.

``redisq-conformance --port 'python tests/ports/python.py'`` from the root of a checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

sys.path.insert(0, str(Path(__file__).parents[2]))

from redisq import AsyncRedisTransport, InvalidArgument, Lease, RedisTransport
from redisq.keys import decode, encode

CAPABILITIES = [
    *("atomic-nack", "park-revokes", "server-clock", "window-repair", "drain-at-maxmemory", "checked-arguments"),
    *("arrival-order", "safe-write-order", "tier-recovery", "extend"),
]
SAYS = {"protocol": 1, "name": "redisq-transport", "language": "Python", "version": "0.1.0"}
HELLO = {**SAYS, "capabilities": CAPABILITIES, "takes_now_ms": True}
# The wire's name of what the library refuses under its own.
WIRE = {"visibility": ["px"], "candidates": ["K"], "clock": ["now", "score"]}


class Unsupported(Exception):
    """The library's signatures cannot say this."""


class Adapter:
    """One queue, behind the requests of the protocol."""

    def __init__(self, wait: Callable[[Any], Any], *, asynchronous: bool) -> None:
        self.wait = wait
        self.kind: Any = AsyncRedisTransport if asynchronous else RedisTransport
        self.library: Any = redis.asyncio if asynchronous else redis
        self.now_ms = 0
        self.leases: dict[tuple[bytes, bytes], Lease] = {}

    def hello(self, _: dict[str, Any]) -> Any:
        return HELLO

    def open(self, request: dict[str, Any]) -> None:
        self.close(request)
        self.client = self.library.Redis.from_url(request["url"])
        self.prefix = decode(_bytes(request["prefix"]))

    def close(self, _: dict[str, Any]) -> None:
        if client := vars(self).pop("client", None):
            self.wait(client.aclose() if hasattr(client, "aclose") else client.close())

    def publish(self, request: dict[str, Any]) -> Any:
        queue = self._queue(request["score_ms"], arrival=request["score_ms"] != 0)
        group, payload = _bytes(request["group"]), _bytes(request["payload"])
        return self.wait(queue.publish(group, payload, priority=_integer(request["priority"])))

    def claim(self, request: dict[str, Any]) -> Any:
        if _bytes(request["token"]) in (b"", b"parked"):
            raise Unsupported("the library makes its tokens itself")
        queue = self._queue(request["now_ms"], candidates=_integer(request["candidates"]))
        visibility = _integer(request["visibility_ms"]) / 1000
        lease = self.wait(queue.claim(visibility, min_priority=_integer(request["min_priority"])))
        if lease is None:
            return None
        self.leases[encode(lease.group), encode(lease.token)] = lease
        return {
            "group": _tagged(encode(lease.group)),
            "payload": _tagged(lease.payload),
            "token": {"utf8": lease.token},
        }

    def ack(self, request: dict[str, Any]) -> int:
        return int(self.wait(self._queue(request["now_ms"]).ack(self._lease(request))))

    def nack(self, request: dict[str, Any]) -> int:
        delay = _integer(request["delay_ms"]) / 1000
        return int(self.wait(self._queue(request["now_ms"]).nack(self._lease(request), delay=delay)))

    def extend(self, request: dict[str, Any]) -> int:
        visibility = _integer(request["visibility_ms"]) / 1000
        renewed = self.wait(self._queue(request["now_ms"]).extend(self._lease(request), visibility=visibility))
        return int(renewed is not None)

    def _queue(self, now_ms: Any, *, candidates: int = 8, arrival: bool = False) -> Any:
        """The transport with these settings, on the one client: a client's clock shows ``now_ms``."""
        if now_ms is not None:
            self.now_ms = _integer(now_ms)
        return self.kind(
            self.client,
            prefix=self.prefix,
            clock=None if now_ms is None else lambda: self.now_ms / 1000,
            candidates=candidates,
            new_groups="arrival" if arrival else "first",
        )

    def _lease(self, request: dict[str, Any]) -> Lease:
        group, token = _bytes(request["group"]), _bytes(request["token"])
        return self.leases.get((group, token)) or Lease(decode(group), b"", decode(token), 30.0, 0.0)


def _integer(value: Any) -> int:
    if not isinstance(value, int):
        raise Unsupported("an argument that is no integer")
    return value


def _bytes(value: dict[str, str]) -> bytes:
    return base64.b64decode(value["b64"]) if "b64" in value else value["utf8"].encode()


def _tagged(data: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(data).decode()}


def main() -> None:
    """Answers requests until the input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--async", action="store_true", dest="asynchronous")
    asynchronous: bool = parser.parse_args().asynchronous
    with asyncio.Runner() as runner:
        adapter = Adapter(lambda r: runner.run(r) if inspect.iscoroutine(r) else r, asynchronous=asynchronous)
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if "argv" in request:
                    raise Unsupported("a raw ARGV")
                answer = {"ok": getattr(adapter, request["op"])(request)}
            except Unsupported as error:
                answer = {"unsupported": str(error)}
            except InvalidArgument as error:
                arguments = WIRE.get(error.argument, [error.argument.removeprefix("lease.")])
                answer = {"error": {"code": "REDISQ_BADARG", "arguments": arguments, "message": str(error)}}
            except Exception as error:  # the server's own first word, or the client's class
                answer = {"error": {"code": str(error).split(" ", 1)[0] or type(error).__name__, "message": str(error)}}
            print(json.dumps({"id": request["id"], **answer}), flush=True)


if __name__ == "__main__":
    main()
