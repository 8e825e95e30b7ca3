"""The operation object: what is done to a queue, when, and what was answered.

One form serves everything: the oracle's JSON lines, vectors, the port protocol, and the traces people read
(``model/notation.py``). An operation is one of the five scripts with its arguments, a foreign write (something other
than redisq that changes a key), or ``wait``, which only lets time pass.

JSON of an operation::

    {"op": "claim", "time_ms": 1000, "prefix": {"utf8": "p"}, "token": {"utf8": "A"}, "visibility_ms": 500}

``time_ms`` is the server's clock. Byte strings are tagged, ``{"utf8": text}`` or ``{"b64": base64}``; numbers are
integers, and those that are times end in ``_ms``. ``null`` for ``now_ms`` or ``score_ms`` is the server's clock. An
argument left out has the value in ``DEFAULTS``. A tagged byte string where a number is due is sent as it is, and
``"argv": [...]`` replaces all arguments: so every malformed call can be written down.

JSON of a reply: ``{"ok": 1}``, ``{"ok": null}``, ``{"ok": {"group": …, "payload": …}}``,
``{"error": {"code": "REDISQ_BADARG", "arguments": ["px"]}}``, ``{"unsupported": why}``, ``{"fault": what}``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Value: TypeAlias = bytes | int | None
Json: TypeAlias = dict[str, Any]

# The ARGV of each script, in order, under the names that headers and REDISQ_BADARG use.
ARGV = {
    "publish": ("prefix", "group", "payload", "priority", "score"),
    "claim": ("prefix", "now", "px", "token", "K", "min_priority"),
    "ack": ("prefix", "group", "token", "now"),
    "nack": ("prefix", "group", "token", "now", "delay"),
    "extend": ("prefix", "group", "token", "now", "px"),
}
# Where the operation object says more than ARGV does: the unit, or the name of the API.
NAMES = {"score": "score_ms", "now": "now_ms", "px": "visibility_ms", "delay": "delay_ms", "K": "candidates"}
# Foreign writes and their arguments.
FOREIGN = {
    "drop-list": ("prefix", "group"),
    "break-list": ("prefix", "group"),
    "persist-lock": ("prefix", "group"),
    "drop-lock": ("prefix", "group"),
    "break-lock": ("prefix", "group"),
    "drop-prio": ("prefix", "group"),
    "set-prio": ("prefix", "group", "value"),
    "drop-entry": ("prefix", "group", "tier"),
    "set-entry": ("prefix", "group", "tier", "score_ms"),
    # As many groups as ``size``, with so many messages each, an entry at ``score_ms`` and, unless ``visibility_ms``
    # is 0, a lease: what workers with other clocks leave behind, or a restore that lost the lists (0 messages).
    "crowd": ("prefix", "size", "tier", "score_ms", "visibility_ms", "messages"),
    "disperse": ("prefix", "size", "tier"),  # all keys of such a crowd are deleted
}
ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    **{op: tuple(NAMES.get(name, name) for name in names) for op, names in ARGV.items()},
    **FOREIGN,
    "wait": (),
}
BYTES = frozenset({"prefix", "group", "payload", "token", "value"})
MAY_BE_NULL = frozenset({"now_ms", "score_ms"})
PREFIX = b"redisq"
DEFAULTS: Mapping[str, Value] = {
    "prefix": PREFIX,
    "payload": b"",
    "priority": 0,
    "score_ms": 0,
    "now_ms": None,
    "visibility_ms": 30_000,
    "candidates": 8,
    "min_priority": 0,
    "delay_ms": 0,
}

# The corrections of the original design that an implementation may have (spec/capabilities.md).
CAPABILITIES = (
    "atomic-nack",
    "park-revokes",
    "server-clock",
    "window-repair",
    "drain-at-maxmemory",
    "checked-arguments",
    "arrival-order",
    "safe-write-order",
    "tier-recovery",
    "extend",
)


class Malformed(ValueError):
    """An operation or reply that is not of the form above; the message says where and what is allowed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. ``args`` holds every argument by name, or ``argv`` the script's raw ARGV instead."""

    op: str
    time_ms: int
    args: Mapping[str, Value] = field(default_factory=dict)
    argv: tuple[bytes, ...] | None = None

    @property
    def is_script(self) -> bool:
        """Whether this calls one of the five scripts."""
        return self.op in ARGV

    @property
    def prefix(self) -> bytes:
        """The prefix it works under."""
        if self.argv is not None:
            return self.argv[0] if self.argv else b""
        prefix = self["prefix"]
        assert isinstance(prefix, bytes)
        return prefix

    def __getitem__(self, name: str) -> Value:
        return self.args[name] if name in self.args else DEFAULTS[name]

    def to_argv(self) -> tuple[bytes, ...]:
        """The ARGV this sends to its script."""
        if self.argv is not None:
            return self.argv
        return tuple(_encoded(self[name]) for name in ARGUMENTS[self.op])

    def to_json(self) -> Json:
        """The operation as the JSON object of the module's docstring."""
        if self.argv is not None:
            return {"op": self.op, "time_ms": self.time_ms, "argv": [tagged(value) for value in self.argv]}
        args = {name: tagged(value) if isinstance(value, bytes) else value for name, value in self.args.items()}
        return {"op": self.op, "time_ms": self.time_ms, **args}

    @classmethod
    def from_json(cls, obj: Any) -> Operation:
        """Reads such an object. Raises Malformed, naming the member that is wrong."""
        if not isinstance(obj, dict):
            raise Malformed(f"an operation is a JSON object, not {obj!r:.80}")
        rest = {name: value for name, value in obj.items() if name != "id"}
        op, time_ms = rest.pop("op", None), rest.pop("time_ms", None)
        if not isinstance(op, str) or op not in ARGUMENTS:
            raise Malformed(f"op: one of {', '.join(ARGUMENTS)}, not {op!r:.80}")
        if not _is_int(time_ms) or not 0 <= time_ms < 10**15:
            raise Malformed(f"time_ms: an integer of milliseconds from 0 to 999999999999999, not {time_ms!r:.80}")
        if "argv" in rest:
            argv = rest.pop("argv")
            if rest or op not in ARGV or not isinstance(argv, list):
                raise Malformed("argv: a list of tagged byte strings, for a script, in place of all other arguments")
            return cls(op, time_ms, argv=tuple(untagged(value, "argv") for value in argv))
        names = ARGUMENTS[op]
        for name in rest:
            if name not in names:
                raise Malformed(f"{name}: {op} has no such argument; it takes {', '.join(names) or 'none'}")
        for name in names:
            if name not in rest and name not in DEFAULTS:
                raise Malformed(f"{name}: {op} needs it")
        return cls(op, time_ms, {name: _value(name, value, op) for name, value in rest.items()})


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a claim delivers: the group it leased and the group's oldest message."""

    group: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Ok:
    """The script's reply: an integer, a delivery, or None for nil."""

    value: int | Delivery | None


@dataclass(frozen=True, slots=True)
class Error:
    """An error reply: its code and, for REDISQ_BADARG, the ARGV names that are not of their form."""

    code: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The one asked cannot do this operation; it has done nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Fault:
    """The one asked failed at something that is no answer of the queue; never an expected reply."""

    what: str


Reply: TypeAlias = Ok | Error | Unsupported | Fault
WRONGTYPE = Error("WRONGTYPE")


def reply_to_json(reply: Reply) -> Json:
    """A reply as the JSON object of the module's docstring."""
    match reply:
        case Ok(Delivery(group, payload)):
            return {"ok": {"group": tagged(group), "payload": tagged(payload)}}
        case Ok(value):
            return {"ok": value}
        case Error(code, arguments):
            return {"error": {"code": code, "arguments": list(arguments)}}
        case Unsupported(why):
            return {"unsupported": why}
    return {"fault": reply.what}


def tagged(data: bytes) -> Json:
    """Bytes as ``{"utf8": …}`` where they are UTF-8 without NUL, at which C's strings end; else as ``{"b64": …}``."""
    try:
        if b"\0" not in data:
            return {"utf8": data.decode()}
    except UnicodeDecodeError:
        pass
    return {"b64": base64.b64encode(data).decode()}


def untagged(value: Any, name: str) -> bytes:
    """The bytes of such an object. Raises Malformed naming the argument."""
    match value:
        case {"utf8": str(text), **rest} if not rest:
            try:
                return text.encode()
            except UnicodeEncodeError:
                raise Malformed(f"{name}: utf8 has an unpaired surrogate; send such bytes as b64") from None
        case {"b64": str(text), **rest} if not rest:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                raise Malformed(f"{name}: b64 is not base64: {text!r:.80}") from None
    raise Malformed(f'{name}: bytes as {{"utf8": text}} or {{"b64": base64}}, not {value!r:.80}')


def _value(name: str, value: Any, op: str) -> Value:
    if name in BYTES or isinstance(value, dict):
        if name not in BYTES and op not in ARGV:
            raise Malformed(f"{name}: an integer, not {value!r:.80}")
        return untagged(value, name)
    if _is_int(value) and (op in ARGV or name != "tier" or 0 <= value <= 4):
        return int(value)
    if value is None and name in MAY_BE_NULL and op in ARGV:
        return None
    allowed = "an integer, null for the server's clock" if name in MAY_BE_NULL else "an integer"
    raise Malformed(f"{name}: {allowed}, or tagged bytes to be sent as they are, not {value!r:.80}")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _encoded(value: Value) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"" if value is None else b"%d" % value
