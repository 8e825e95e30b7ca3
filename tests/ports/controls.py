"""``python -m tests.ports.controls NAME``: ports that one check of the spec must convict, each as an adapter.

NAME is a class of this module or of the zoo, or a design of ``tests/designs``, whose scripts the port then has.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any
from urllib.parse import urlsplit

import redis

from tests.ports.zoo import PORTS
from tests.ports.zoo.base import NacksInSteps, Port, Request, design, tag, untag


class ClaimInSteps(Port):
    """Looks for a free group in some round trips, and takes it in others."""

    def claim(self, request: Request) -> Any:
        client: Any = self.client
        seconds, us = client.time()
        now_ms, px = seconds * 1000 + us // 1000, request["visibility_ms"]
        for tier in range(5):
            ready = b"%s:ready:%d" % (self.prefix, tier)
            for group in client.zrangebyscore(ready, "-inf", now_ms):
                payload = client.lindex(self.key("q", group), 0)
                if payload is not None and not client.exists(self.key("lock", group)):
                    client.set(self.key("lock", group), untag(request["token"]), px=px)
                    client.zadd(ready, {group: now_ms + px})
                    return {"group": tag(group), "payload": tag(payload)}
        return None


class PublishInSteps(Port):
    """Does what the script does, in its order, a round trip each."""

    def publish(self, request: Request) -> Any:
        client: Any = self.client
        group, prio = untag(request["group"]), self.prefix + b":prio"
        field = client.hget(prio, group)
        tier = field or b"%d" % request["priority"]
        client.zadd(self.prefix + b":ready:" + tier, {group: 0}, nx=True)
        if not field:
            client.hset(prio, group, tier)
        return client.rpush(self.key("q", group), untag(request["payload"]))


class SwallowsRefusals(Port):
    """Says that all went well when the server refused."""

    def call(self, script: str, request: Request, *names: str) -> Any:
        try:
            return super().call(script, request, *names)
        except redis.ResponseError:
            return None if script == "claim" else 1


class DiesOfRefusals(Port):
    """Ends where it should answer an error."""

    def call(self, script: str, request: Request, *names: str) -> Any:
        try:
            return super().call(script, request, *names)
        except redis.ResponseError:
            os._exit(3)


class IgnoresTheUser(Port):
    """Connects as nobody, whoever stands in the URL."""

    def open(self, request: Request) -> None:
        parts = urlsplit(request["url"])
        super().open({**request, "url": f"redis://{parts.hostname}:{parts.port}{parts.path}"})


class LeavesTheServer(Port):
    """Keeps the connection of its first open."""

    def open(self, request: Request) -> None:
        if "client" not in vars(self):
            super().open(request)


class FindsNothing(Port):
    """Takes every error of a claim for an empty queue."""

    def claim(self, request: Request) -> Any:
        try:
            return super().claim(request)
        except redis.RedisError:
            return None


class TriesTwice(Port):
    """Calls again when the server is busy, and once more to be sure."""

    def evaluate(self, script: str, *argv: bytes) -> Any:
        try:
            return super().evaluate(script, *argv)
        except redis.ResponseError:
            super().evaluate(script, *argv)
            return super().evaluate(script, *argv)


class Hopes(Port):
    """Reports a settlement as done when the connection breaks."""

    def ack(self, request: Request) -> Any:
        try:
            return super().ack(request)
        except redis.ConnectionError:
            return 1


class OneConnection(Port):
    """Speaks on a connection of its own: with a time-out, and without a new one when it breaks."""

    def open(self, request: Request) -> None:
        super().open(request)
        parts = urlsplit(request["url"])
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=0.3)

    def evaluate(self, script: str, *argv: bytes) -> Any:
        words = [b"EVAL", self.scripts[script].encode(), b"1", self.prefix + b":prio", *argv]
        try:
            self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            reply = self.socket.recv(1 << 16)
        except OSError as error:
            raise redis.ConnectionError(f"CLOSED {error}") from None
        if not reply or reply[:1] == b"-":
            raise redis.ResponseError(reply[1:].decode() or "CLOSED by the server")
        lines = reply.split(b"\r\n")
        return int(lines[0][1:]) if reply[:1] == b":" else [lines[2], lines[4]] if reply[:2] == b"*2" else None


def of_design(name: str) -> type[Port]:
    """The right port with the scripts of a design, or with its nack of several round trips."""
    return type(name, (NacksInSteps if design(name).nack else Port,), {"of_design": name})


if __name__ == "__main__":
    (name,) = sys.argv[1:]
    port = {**PORTS, **globals()}.get(name) or of_design(name)
    port().run()
