"""The messages of the port protocol (``spec/port-protocol.md``): requests as sent, answers as read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from model.operation import (
    ARGUMENTS,
    ARGV,
    BYTES,
    CAPABILITIES,
    DEFAULTS,
    Delivery,
    Error,
    Fault,
    Json,
    Malformed,
    Ok,
    Operation,
    Reply,
    Unsupported,
    tagged,
    untagged,
)
from model.state import TIERS, Lock, State
from tests.support.outcome import cut
from tests.support.port.process import PortError

PROTOCOL = 1
LARGEST = 2**53
LONGEST_NAME = 200
ANSWERS = ("ok", "error", "unsupported", "fault")
HELLO: Json = {"op": "hello", "protocols": [PROTOCOL]}


@dataclass(frozen=True)
class Hello:
    """What an adapter says of its port."""

    name: str
    language: str
    version: str
    capabilities: frozenset[str]
    takes_now_ms: bool
    keeps_keys: bool = False

    @classmethod
    def read(cls, answer: Json) -> Hello:
        """Reads the answer to hello. Raises PortError naming the member that is wrong."""
        ok = answer.get("ok")
        if not isinstance(ok, dict):
            raise PortError("protocol", f'hello is answered {{"ok": {{…}}}}, not {_short(answer)}')
        if ok.get("protocol") != PROTOCOL:
            raise PortError("protocol", f"hello: protocol is {PROTOCOL}, not {_short(ok.get('protocol'))}")
        texts = [ok.get(name) for name in ("name", "language", "version")]
        for name, value in zip(("name", "language", "version"), texts, strict=True):
            if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
                what = f"a text of 1 to {LONGEST_NAME} characters"
                raise PortError("protocol", f"hello: {name} is {what}, not {_short(value)}")
        capabilities = ok.get("capabilities")
        if not isinstance(capabilities, list):
            raise PortError("protocol", f"hello: capabilities is a list of texts, not {_short(capabilities)}")
        for capability in capabilities:
            if capability not in CAPABILITIES:
                known = ", ".join(CAPABILITIES)
                raise PortError("protocol", f"hello: no such capability: {_short(capability)}; one of {known}")
        for name in ("takes_now_ms", "state"):
            if not isinstance(ok.get(name, False), bool):
                raise PortError("protocol", f"hello: {name} is true or false, not {_short(ok[name])}")
        name, language, version = (str(text) for text in texts)
        hello = cls(
            name, language, version, frozenset(capabilities), ok.get("takes_now_ms", False), ok.get("state", False)
        )
        if "server-clock" not in hello.capabilities and not hello.takes_now_ms:
            raise PortError(
                "protocol",
                "hello: neither the capability server-clock nor takes_now_ms: such a port takes its time from the "
                "machine, which the runner cannot move. Let the adapter supply now, or use the server's clock",
            )
        return hello


def is_raw(operation: Operation) -> bool:
    """Whether it holds something that a typed API may have no way to send."""
    if operation.argv is not None or (operation.op == "claim" and operation["token"] in (b"", b"parked")):
        return True
    return any(isinstance(value, bytes) and name not in BYTES for name, value in operation.args.items())


def request(operation: Operation) -> Json:
    """The operation as it is sent: every argument is there, and no integer is larger than a double holds exactly."""
    if operation.argv is not None:
        return operation.to_json()
    names = [name for name in ARGUMENTS[operation.op] if name in operation.args or name in DEFAULTS]
    return {"op": operation.op, "time_ms": operation.time_ms} | {name: _sent(operation[name]) for name in names}


def _sent(value: Any) -> Any:
    if isinstance(value, int) and abs(value) > LARGEST:
        value = str(value).encode()
    return tagged(value) if isinstance(value, bytes) else value


def reply(answer: Json, op: str) -> tuple[Reply, bytes | None]:
    """The answer to a script, and the token that the port made, if it says one. Raises PortError."""
    given = [name for name in ANSWERS if name in answer]
    if len(given) != 1:
        raise PortError("protocol", f"an answer has one of {', '.join(ANSWERS)}, not {_short(answer)}")
    value = answer[given[0]]
    match given[0]:
        case "ok":
            return _ok(value, op)
        case "error":
            return _error(value, op), None
    if not isinstance(value, str):
        raise PortError("protocol", f"{given[0]} is a text that says why, not {_short(value)}")
    return (Unsupported if given[0] == "unsupported" else Fault)(cut(value)), None


def _ok(value: Any, op: str) -> tuple[Reply, bytes | None]:
    if op == "claim":
        if value is None:
            return Ok(None), None
        if isinstance(value, Mapping):
            try:
                token = untagged(value["token"], "token") if "token" in value else None
                group, payload = (untagged(value.get(name), name) for name in ("group", "payload"))
            except Malformed as error:
                raise PortError("protocol", f"claim: {error}") from None
            return Ok(Delivery(group, payload)), token
        raise PortError("protocol", f'claim answers null or {{"group": …, "payload": …}}, not {_short(value)}')
    if not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())):
        return Ok(int(value)), None  # 1.0 is an integer of JSON
    raise PortError("protocol", f"{op} answers an integer (true is 1, false is 0), not {_short(value)}")


def _error(value: Any, op: str) -> Reply:
    if not isinstance(value, Mapping) or not isinstance(value.get("code"), str):
        raise PortError("protocol", f'an error is {{"code": TEXT, …}}, not {_short(value)}')
    arguments = value.get("arguments")
    if arguments is None:
        arguments = re.findall(r"\w+", str(value.get("message", "")))
    if not isinstance(arguments, list) or not all(isinstance(name, str) for name in arguments):
        raise PortError("protocol", f"arguments of an error are a list of ARGV names, not {_short(arguments)}")
    return Error(cut(value["code"]), tuple(name for name in ("ARGV", *ARGV[op]) if name in arguments))


def read_state(answer: Json) -> State:
    """Reads the answer to state: what ``State.to_json`` writes. Raises PortError."""
    value = answer.get("state")
    if not isinstance(value, dict):
        raise PortError("protocol", f'state is answered {{"state": {{…}}}}, not {_short(answer)}')
    try:
        if len(value["ready"]) != TIERS:
            raise Malformed(f"ready: {TIERS} tiers, not {len(value['ready'])}")
        return State(
            _integer(value["now_ms"], "now_ms"),
            {
                untagged(queue["group"], "group"): None
                if queue["messages"] is None
                else tuple(untagged(message, "message") for message in queue["messages"])
                for queue in value["queues"]
            },
            {
                untagged(lock["group"], "group"): Lock(
                    None if lock["value"] is None else untagged(lock["value"], "value"),
                    None if lock["deadline_ms"] is None else _integer(lock["deadline_ms"], "deadline_ms"),
                )
                for lock in value["locks"]
            },
            tuple(
                {untagged(entry["group"], "group"): _integer(entry["score_ms"], "score_ms") for entry in tier}
                for tier in value["ready"]
            ),
            {untagged(field["group"], "group"): untagged(field["value"], "value") for field in value["prio"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise PortError("protocol", f"state is not of the form of spec/oracle.md: {error!r:.200}") from None


def _integer(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f"{name}: an integer, not {_short(value)}")
    return value


def _short(value: object) -> str:
    return f"{value!r:.120}"
