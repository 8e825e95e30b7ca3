"""Malformed lines of the port protocol, as many as one likes, each with what the refusal of it has to say.

A line is cut off, not UTF-8, no JSON, no object, nested, huge; or it is a good message with one member that is wrong.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import dataclass
from typing import Any

DEEP = 200_000
HUGE = 10**400
LONG = "x" * 100_000
# What stands where something else is due. A value is wrong at a place whose types are not its own.
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 1.5, 1e300, HUGE, "", "text", "\x00", LONG, [], [1], [[]], {}, {"ok": 1}),
    *({"utf8": 1}, {"utf8": None}, {"b64": "*"}, {"b64": "YQ="}, {"utf8": "a", "b64": "YQ=="}),
)
GROUP, PAYLOAD = {"utf8": "g"}, {"b64": "/w=="}
HELLO = {"protocol": 1, "name": "n", "language": "l", "version": "v", "capabilities": ["server-clock"], "state": False}
CLAIMED = {"ok": {"group": GROUP, "payload": PAYLOAD, "token": {"utf8": "A"}}}
REFUSED = {"error": {"code": "REDISQ_BADARG", "arguments": ["K"]}}
STATE = {
    "state": {
        "now_ms": 5,
        "queues": [{"group": GROUP, "messages": [PAYLOAD]}],
        "locks": [{"group": GROUP, "value": {"utf8": "A"}, "deadline_ms": 9}],
        "ready": [[{"group": GROUP, "score_ms": 3}], [], [], [], []],
        "prio": [{"group": GROUP, "value": {"utf8": "0"}}],
    }
}
INTEGER, TEXT, NULL = (int, float), (str,), type(None)  # 1.0 is an integer of JSON

# The request, a good answer, the path to a member, the types that may be right there, and what is said of others.
Place = tuple[str, dict[str, Any], str, tuple[type, ...], str]
NO_STATE = "state is not of the form of spec/oracle.md: "
ANSWERS: tuple[Place, ...] = (
    ("hello", {"ok": HELLO}, "ok", (dict,), "hello is answered"),
    ("hello", {"ok": HELLO}, "ok.protocol", (bool,), "hello: protocol is 1, not "),
    ("hello", {"ok": HELLO}, "ok.name", TEXT, "hello: name is a text"),
    ("hello", {"ok": HELLO}, "ok.version", TEXT, "hello: version is a text"),
    ("hello", {"ok": HELLO}, "ok.capabilities", (list,), "hello: capabilities is a list"),
    ("hello", {"ok": HELLO}, "ok.capabilities.0", (), "hello: no such capability: "),
    ("hello", {"ok": HELLO}, "ok.state", (bool,), "hello: state is true or false"),
    ("publish", {"ok": 1}, "ok", INTEGER, "publish answers an integer (true is 1, false is 0), not "),
    ("claim", CLAIMED, "ok", (dict, NULL), "claim answers null or "),
    ("claim", CLAIMED, "ok.group", (), "claim: group: "),
    ("claim", CLAIMED, "ok.payload", (), "claim: payload: "),
    ("claim", CLAIMED, "ok.token", (), "claim: token: "),
    ("claim", REFUSED, "error", (dict,), "an error is {"),
    ("claim", REFUSED, "error.code", TEXT, "an error is {"),
    ("claim", REFUSED, "error.arguments", (list, NULL), "arguments of an error are a list"),
    ("claim", REFUSED, "error.arguments.0", TEXT, "arguments of an error are a list"),
    ("nack", {"unsupported": "no"}, "unsupported", TEXT, "unsupported is a text that says why, not "),
    ("ack", {"fault": "no"}, "fault", TEXT, "fault is a text that says why, not "),
    ("ack", {"ok": 1}, "fault", (), "an answer has one of ok, error, unsupported, fault"),
    ("state", STATE, "state", (dict,), "state is answered"),
    ("state", STATE, "state.now_ms", (int,), NO_STATE),
    ("state", STATE, "state.queues.0", (), NO_STATE),
    ("state", STATE, "state.queues.0.messages.0", (), NO_STATE),
    ("state", STATE, "state.locks.0.value", (NULL,), NO_STATE),
    ("state", STATE, "state.locks.0.deadline_ms", (int, NULL), NO_STATE),
    ("state", STATE, "state.ready", (), NO_STATE),
    ("state", STATE, "state.ready.0.0.score_ms", (int,), NO_STATE),
    ("state", STATE, "state.prio.0.value", (), NO_STATE),
)
PUBLISH = {"op": "publish", "time_ms": 1, "group": GROUP, "payload": PAYLOAD, "priority": 0, "score_ms": 0}
CLAIM = {"op": "claim", "time_ms": 1, "token": {"utf8": "A"}, "now_ms": 1, "candidates": 8}
ENTRY = {"op": "set-entry", "time_ms": 1, "group": GROUP, "tier": 0, "score_ms": 1}
REQUESTS: tuple[Place, ...] = (
    ("publish", PUBLISH, "op", (), "op: one of publish, claim, ack, "),
    ("publish", PUBLISH, "group", (), "group: "),
    ("publish", PUBLISH, "payload", (), "payload: "),
    ("publish", PUBLISH, "priority", (int, dict), "priority: an integer, or tagged bytes"),
    ("publish", PUBLISH, "score_ms", (int, dict, NULL), "score_ms: an integer, null for the server's clock"),
    ("publish", PUBLISH, "argv", (), "argv: a list of tagged byte strings"),
    ("claim", CLAIM, "time_ms", (), "time_ms: an integer of milliseconds from 0 to "),
    ("claim", CLAIM, "candidates", (int, dict), "candidates: an integer, or tagged bytes"),
    ("claim", CLAIM, "delay_ms", (), "delay_ms: claim has no such argument; it takes "),
    ("set-entry", ENTRY, "tier", (), "tier: an integer"),
    ("state", {"op": "state"}, "prefix", (), "prefix: "),
)


@dataclass(frozen=True)
class Line:
    """What is sent, the request that it answers or its own operation, and what has to be said of it, one of these."""

    data: bytes
    op: str
    says: tuple[str, ...]


def malformed(number: int, places: tuple[Place, ...]) -> Line:
    """The line of that number; the same each time."""
    chance = random.Random(number)
    op, message, path, types, says = chance.choice(places)
    good = json.dumps({"id": 1, **message}).encode()
    match chance.randrange(12):
        case 0:
            return Line(good[: chance.randrange(1, len(good))], op, ("not JSON",))
        case 1:
            at = chance.randrange(len(good))
            return Line(good[:at] + bytes([chance.randrange(0x80, 0x100)]) + good[at:], op, ("not UTF-8",))
        case 2:
            noise = b"\xff" + chance.randbytes(chance.randrange(60)).replace(b"\n", b"")
            return Line(noise, op, ("not UTF-8",))
        case 3:
            opening = chance.choice([b"[", b'{"a":', b'[{"id": 1, "ok":'])
            return Line(opening * (DEEP // len(opening)), op, ("nested too deeply", "not JSON"))
        case 4:
            numeral = chance.choice([b"NaN", b"Infinity", b"-Infinity", b"1" * 5_000, b"01", b"0x1", b"1."])
            return Line(b'{"id": 1, "ok": ' + numeral + b"}", op, ("JSON", "digits"))
        case 5:
            value = chance.choice([value for value in VALUES if not isinstance(value, dict)])
            return Line(json.dumps(value).encode(), op, ("JSON object",))
    value = chance.choice([value for value in VALUES if type(value) not in types])
    return Line(json.dumps(_with({"id": 1, **message}, path.split("."), value)).encode(), op, (says,))


def _with(message: Any, path: list[str], value: Any) -> Any:
    """The message with that value at the end of the path."""
    if not path:
        return value
    changed = copy.copy(message)
    step = int(path[0]) if isinstance(message, list) else path[0]
    changed[step] = _with(message[step] if path[1:] else None, path[1:], value)
    return changed
