"""Ports that get the protocol wrong: they crash, hang, babble or lie. Each failure has a name."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from tests.ports.zoo.base import Port, Request, tag


class CrashesOnThird(Port):
    """Ends at its third operation."""

    rejected_by = ("PUBLISH-1a", "CLAIM-9a")
    kind = "crash"
    operations = 0

    def call(self, script: str, request: Request, *names: str) -> Any:
        self.operations += 1
        if self.operations == 3:
            print("out of luck", file=sys.stderr, flush=True)
            os._exit(3)
        return super().call(script, request, *names)


class Hangs(Port):
    """Never answers an ack."""

    rejected_by = ("ACK-1a",)
    kind = "hang"

    def ack(self, request: Request) -> Any:
        time.sleep(3600)


class Noisy(Port):
    """Logs to standard output."""

    rejected_by = ("PUBLISH-1a", "CLAIM-1b")
    kind = "garbage"

    def publish(self, request: Request) -> Any:
        print("publishing", flush=True)
        return super().publish(request)


class NotJson(Port):
    """Answers a claim in a form of its own."""

    rejected_by = ("CLAIM-9a", "CLAIM-10a")
    kind = "garbage"

    def claim(self, request: Request) -> Any:
        sys.stdout.write("OK ")
        return super().claim(request)


class HalfACharacter(Port):
    """Says in an error what no text can hold: half a surrogate pair."""

    rejected_by = ("ARG-4a",)
    kind = "garbage"

    def answer(self, request: Request) -> Request:
        answer = super().answer(request)
        if "error" in answer:
            answer["error"]["message"] += "\ud83d"
        return answer


class Bottomless(Port):
    """Writes a line that does not end."""

    rejected_by = ("ACK-1a",)
    kind = "oversized"

    def ack(self, request: Request) -> Any:
        sys.stdout.write("x" * (1 << 25))
        return super().ack(request)


class WrongId(Port):
    """Answers an ack with another id."""

    rejected_by = ("ACK-1a", "FAIL-3a")
    kind = "protocol"

    def answer(self, request: Request) -> Request:
        answer = super().answer(request)
        return {**answer, "id": request["id"] - 1} if request["op"] == "ack" else answer


class SaysTrue(Port):
    """Answers true for 1."""

    rejected_by = ("ACK-1a", "SETTLE-2a")
    kind = "protocol"

    def ack(self, request: Request) -> Any:
        return bool(super().ack(request))


class BadBase64(Port):
    """Leaves out the padding of base64."""

    rejected_by = ("CLAIM-9a",)
    kind = "protocol"

    def claim(self, request: Request) -> Any:
        reply = super().claim(request)
        return reply and {**reply, "payload": {"b64": tag(b"ab")["b64"].rstrip("=")}}


class FaultForError(Port):
    """Takes a refusal for an accident of its own."""

    rejected_by = ("ARG-4a", "PUBLISH-9a")
    kind = "fault"

    def answer(self, request: Request) -> Request:
        answer = super().answer(request)
        return {"fault": answer["error"]["message"]} if "error" in answer else answer


class Shy(Port):
    """Answers that it is not supported where an integer is out of range."""

    rejected_by = ("ARG-5a",)
    kind = "unsupported"

    def answer(self, request: Request) -> Request:
        answer = super().answer(request)
        return {"unsupported": "out of range"} if "error" in answer else answer


class Deaf(Port):
    """Takes no notice of who asks: it says hello, and answers nil to everything."""

    rejected_by = ("CLAIM-9a", "PUBLISH-1a")
    kind = "protocol"

    def answer(self, request: Request) -> Request:
        return super().answer(request) if request["op"] == "hello" else {"ok": None}
