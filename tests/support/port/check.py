"""``--check-port``: a short talk with an adapter, each answer held against the schema of the protocol.

It says nothing about the queue: only whether the adapter speaks the protocol, and what is wrong where it does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from referencing import Registry, Resource

from model.operation import PREFIX, Json, Operation, Value, tagged
from tests.support.cases import SPEC
from tests.support.port.messages import ANSWERS, HELLO, request
from tests.support.port.process import PortError, Process
from tests.support.port.witness import HELLO_SECONDS

SCHEMAS = SPEC / "schemas"
BINARY = b"\x00\r\n\xff{}*:"


def schema(name: str) -> Json:
    """One of the schemas of the spec."""
    found: Json = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def validator(name: str, definition: str = "") -> Draft202012Validator:
    """A validator of a schema of the spec, or of one of its definitions."""
    everything = [(path.name, Resource.from_contents(schema(path.stem))) for path in sorted(SCHEMAS.glob("*.json"))]
    registry: Registry[bool | Mapping[str, Any]] = Registry().with_resources(everything)
    where = f"{name}.json#/$defs/{definition}" if definition else f"{name}.json"
    return Draft202012Validator({"$ref": where}, registry=registry)


def mistakes_in(op: str, answer: Json) -> list[str]:
    """What is wrong with an answer to that request, a sentence each; none if it is of the protocol."""
    given = [name for name in ANSWERS if name in answer]
    if len(given) != 1:
        return [f"{op}: an answer has exactly one of {', '.join(ANSWERS)}; this one has {', '.join(given) or 'none'}"]
    definition = op if given[0] == "ok" else given[0]
    if given[0] != "ok" and op in ("hello", "open", "close"):
        return [f"{op}: is answered ok, not {given[0]}: {answer[given[0]]!r:.200}"]
    error = best_match(validator("protocol", definition).iter_errors(answer))
    if error is None:
        return []
    place = ".".join(str(step) for step in error.absolute_path) or "the answer"
    return [f"{op}: {place}: {error.message:.300}"]


def talk() -> Iterator[Json]:
    """The requests after hello and open: each operation once as usual, with bytes that are no text, and malformed."""
    for group, payload in ((b"g", b"text"), (BINARY, BINARY), (b"empty", b"")):
        given = {"group": group, "token": b"A" + group}
        yield _request("publish", group=group, payload=payload)
        yield _request("claim", token=given["token"])
        yield _request("extend", **given)
        yield _request("nack", **given, delay_ms=0)
        yield _request("ack", **given)
    yield _request("claim", token=b"B", visibility_ms=0)
    yield _request("claim", token=b"B", candidates=b"1e1")
    yield {"op": "publish", "time_ms": 0, "argv": [tagged(b"redisq"), tagged(b"g")]}


def _request(op: str, **args: Value) -> Json:
    return request(Operation(op, 0, {"prefix": PREFIX, **args}))


def check(command: str, url: str, now_ms: int, timeout_s: float | None) -> list[str]:
    """Talks with an adapter on the server at ``url``; every mistake, a sentence each."""
    try:
        process = Process(command, timeout_s or 10.0)
    except PortError as error:
        return [str(error)]
    found: list[str] = []
    try:
        hello = process.ask(HELLO, timeout_s or HELLO_SECONDS)
        found += mistakes_in("hello", hello)
        found += mistakes_in("open", process.ask({"op": "open", "url": url, "prefix": tagged(PREFIX)}))
        takes_now = not found and "server-clock" not in hello["ok"]["capabilities"]
        for message in talk():
            if takes_now and "now_ms" in message:
                message = {**message, "now_ms": now_ms}
            found += mistakes_in(message["op"], process.ask(message))
        found += mistakes_in("close", process.ask({"op": "close"}))
    except PortError as error:
        found.append(str(error))
    finally:
        process.end()
        if found and (stderr := process.stderr_tail()):
            found.append(f"its standard error ends:\n{stderr}")
    return found
