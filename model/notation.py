"""The readable notation of traces: one line per step, the same in the spec, in failures and in saved files.

::

    0     publish group="g" payload="hello"            -> 1
    0     claim token="A" visibility_ms=1000           -> group="g" payload="hello"
    1001  nack group="g" token="A" delay_ms=500        -> 0
    1001  claim token="B" candidates="1e1"             -> REDISQ_BADARG K
    1001  wait

A line is the server's clock in ms, the operation, the arguments that differ from their defaults, and the reply.
Strings are bytes: printable ASCII, with ``\\xNN``, ``\\r``, ``\\n``, ``\\t``, ``\\\\`` and ``\\"`` for the rest.
``now_ms=server`` is the server's clock. A line that starts with ``#`` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from model.operation import (
    ARGUMENTS,
    ARGV,
    DEFAULTS,
    Delivery,
    Error,
    Malformed,
    Ok,
    Operation,
    Reply,
    Unsupported,
    Value,
    tagged,
)
from model.state import State

_STRING = r'"(?:[^"\\]|\\.)*"'
_ARGUMENT = re.compile(rf"\s+([a-z_]+)=({_STRING}|\[(?:{_STRING}(?:,\s*)?)*\]|-?[0-9]+|server)(?=\s|$)")
_LINE = re.compile(r"\s*([0-9]+)\s+([a-z-]+)")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
_NAMED = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"'}
_WIDTH = 72


def quoted(data: bytes) -> str:
    """Bytes as a string of the notation."""
    named = {ord(char): "\\" + name for name, char in _NAMED.items()}
    return '"' + "".join(named.get(b) or (chr(b) if 32 <= b < 127 else f"\\x{b:02x}") for b in data) + '"'


def unquoted(text: str) -> bytes:
    """The bytes of such a string. Raises Malformed for an escape that is none."""

    def char(match: re.Match[str]) -> str:
        escape = match[1]
        if escape in _NAMED:
            return _NAMED[escape]
        if escape[0] == "x" and len(escape) == 3:
            return chr(int(escape[1:], 16))
        raise Malformed(f"{match[0]}: no such escape in {text}")

    try:
        return _ESCAPE.sub(char, text[1:-1]).encode("latin-1")
    except UnicodeEncodeError:
        raise Malformed(f"{text}: bytes beyond ASCII are written \\xNN") from None


def write_operation(operation: Operation) -> str:
    """The operation as one line, without a reply."""
    if operation.argv is not None:
        arguments = f" argv=[{', '.join(map(quoted, operation.argv))}]"
    else:
        arguments = "".join(
            f" {name}={_written(operation[name])}"
            for name in ARGUMENTS[operation.op]
            if name in operation.args and (name not in DEFAULTS or operation.args[name] != DEFAULTS[name])
        )
    return f"{operation.time_ms:<6} {operation.op}{arguments}"


def write_reply(reply: Reply) -> str:
    """The reply as it stands behind ``->``."""
    match reply:
        case Ok(Delivery(group, payload)):
            return f"group={quoted(group)} payload={quoted(payload)}"
        case Ok(value):
            return "nil" if value is None else str(value)
        case Error(code, arguments):
            return " ".join([code, *arguments])
        case Unsupported(why):
            return f"unsupported: {why}"
    return f"fault: {reply.what}"


def write(operation: Operation, reply: Reply) -> str:
    """Operation and reply as one line."""
    line = write_operation(operation)
    return line if operation.op not in ARGV else f"{line:<{_WIDTH}} -> {write_reply(reply)}"


def read(line: str) -> tuple[Operation, str | None]:
    """One line: the operation, and what stands behind ``->`` if anything does. Raises Malformed."""
    head = _LINE.match(line)
    if head is None:
        raise Malformed(f"a line is TIME OPERATION NAME=VALUE …, not {line.strip()!r}")
    time_ms, op, at = int(head[1]), head[2], head.end()
    if op not in ARGUMENTS:
        raise Malformed(f"{op}: no such operation; one of {', '.join(ARGUMENTS)}")
    obj: dict[str, object] = {"op": op, "time_ms": time_ms}
    while match := _ARGUMENT.match(line, at):
        obj[match[1]] = _read_value(match[2])
        at = match.end()
    rest = line[at:].strip()
    if rest and not rest.startswith("->"):
        raise Malformed(f"not understood: {rest!r} in {line.strip()!r}")
    return Operation.from_json(obj), rest[2:].strip() if rest else None


def read_trace(lines: Iterable[str]) -> list[tuple[Operation, str | None]]:
    """All lines but blank ones and comments, in order. Raises Malformed."""
    return [read(line) for line in lines if line.strip() and not line.lstrip().startswith("#")]


def difference(expected: State, got: State) -> list[str]:
    """The keys that differ, a line each: the key's place, what it should hold, and what it holds."""
    rows: list[tuple[str, str, str]] = []

    def compare(place: str, want: str, have: str) -> None:
        if want != have:
            rows.append((place, want, have))

    expected, got = expected.expired(), got.expired()
    if replace(expected, now_ms=0) == replace(got, now_ms=0):
        return []
    for group in sorted(expected.queues.keys() | got.queues.keys()):
        compare(f"q:{_bare(group)}", _queue(expected, group), _queue(got, group))
    for group in sorted(expected.locks.keys() | got.locks.keys()):
        compare(f"lock:{_bare(group)}", _lock(expected, group), _lock(got, group))
    for tier, (want, have) in enumerate(zip(expected.ready, got.ready, strict=True)):
        for group in sorted(want.keys() | have.keys()):
            compare(f"ready:{tier} {quoted(group)}", str(want.get(group, "absent")), str(have.get(group, "absent")))
    for group in sorted(expected.prio.keys() | got.prio.keys()):
        compare(
            f"prio {quoted(group)}", *(quoted(s.prio[group]) if group in s.prio else "absent" for s in (expected, got))
        )
    for key in got.strays:
        compare(f"key {quoted(key)}", "absent", "there")
    return [f"{place}: expected {want}, got {have}" for place, want, have in rows]


def _read_value(text: str) -> object:
    if text[0] == '"':
        return tagged(unquoted(text))
    if text[0] == "[":
        return [tagged(unquoted(item)) for item in re.findall(_STRING, text)]
    return None if text == "server" else int(text)


def _written(value: Value) -> str:
    if isinstance(value, bytes):
        return quoted(value)
    return "server" if value is None else str(value)


def _bare(group: bytes) -> str:
    text = quoted(group)[1:-1]
    return text if re.fullmatch(r"[\w.-]+", text) else quoted(group)


def _queue(state: State, group: bytes) -> str:
    messages = state.messages(group)
    if messages is None:
        return "a key of another type"
    return "[" + ", ".join(map(quoted, messages)) + "]" if messages else "absent"


def _lock(state: State, group: bytes) -> str:
    lock = state.lock(group)
    if lock is None:
        return "absent"
    value = "a key of another type" if lock.value is None else quoted(lock.value)
    return f"{value} without TTL" if lock.deadline_ms is None else f"{value} until {lock.deadline_ms}"
