"""Ports with the right scripts, and a client around them that calls them wrong."""

from __future__ import annotations

from typing import Any

from tests.ports.zoo.base import Port, Request, tag, untag


class KeepsShas(Port):
    """Loads the scripts when it connects, and takes NOSCRIPT for an error like any other."""

    rejected_by = ("FAIL-8a",)

    def open(self, request: Request) -> None:
        super().open(request)
        self.shas = {name: self.client.script_load(source) for name, source in self.scripts.items()}

    def evaluate(self, script: str, *argv: bytes) -> Any:
        return self.client.evalsha(self.shas[script], 1, self.prefix + b":prio", *argv)


class CutsAtColon(Port):
    """Cuts the id of a group at its first colon."""

    rejected_by = ("KEYS-2a", "KEYS-3a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "group" in request:
            request = {**request, "group": tag(untag(request["group"]).split(b":")[0] or b":")}
        return super().call(script, request, *names)


class PrefixOnce(Port):
    """Keeps the prefix of its first open."""

    rejected_by = ("KEYS-5a", "KEYS-5b")

    def open(self, request: Request) -> None:
        super().open(request)
        self.prefix = vars(self).setdefault("first", self.prefix)


class OwnClock(Port):
    """Declares the server's clock, and sends its own, which is an hour ahead."""

    rejected_by = ("CLAIM-2b", "TIME-1a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "now_ms" in request and request["now_ms"] is None:
            request = {**request, "now_ms": request["time_ms"] + 3_600_000}
        return super().call(script, request, *names)


class ScoresInSeconds(Port):
    """Sends its own clock, in seconds, so that scores are seconds as well."""

    rejected_by = ("CLAIM-11a", "TIME-1a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "now_ms" in request and request["now_ms"] is None:
            request = {**request, "now_ms": request["time_ms"] // 1000}
        return super().call(script, request, *names)


class UncheckedArguments(Port):
    """Passes on whatever Lua takes for a number."""

    of_design = "unchecked-arguments"
    rejected_by = ("ARG-1a", "ARG-3a", "ARG-4a")


class MinusOneIsNow(Port):
    """Has -1 mean the server's clock, as if no caller could send it."""

    rejected_by = ("ARG-3b",)

    def call(self, script: str, request: Request, *names: str) -> Any:
        clocks = {name: None for name in ("now_ms", "score_ms") if request.get(name) == -1}
        return super().call(script, {**request, **clocks}, *names)


class BlamesNow(Port):
    """Reads score and now by one function, which names now when it refuses either."""

    rejected_by = ("ARG-3b",)

    def answer(self, request: Request) -> Request:
        answer = super().answer(request)
        if "error" in answer:
            said = [word.rstrip(":") for word in answer["error"]["message"].split(" ")[1:]]
            answer["error"]["arguments"] = ["now" if word == "score" else word for word in said]
        return answer


class EndsAtNul(Port):
    """Takes bytes for strings of C, which end at the first NUL."""

    rejected_by = ("CLAIM-22a", "KEYS-1a")

    def call(self, script: str, request: Request, *names: str) -> Any:
        if "argv" not in request:
            texts = {name: untag(request[name]) for name in ("group", "payload", "token") if name in request}
            request = {**request, **{name: tag(text.split(b"\0")[0]) for name, text in texts.items()}}
        return super().call(script, request, *names)
