"""Five thousand malformed answers: each is refused with a sentence that says what was wrong, and the runner lives."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from model.__main__ import Oracle
from model.operation import ARGV
from tests.support.port.messages import Hello, read_state, reply
from tests.support.port.process import PortError, Process, parse

LINES = 5_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**400, "", "text", "\x00", [], [1], {}, {"ok": 1}),
    *({"utf8": 1}, {"b64": "*"}, {"utf8": "a", "b64": "YQ=="}, {"group": {"utf8": "g"}}),
)
NAMES = ("id", "ok", "error", "unsupported", "fault", "state", "code", "arguments", "op", "time_ms", "prefix", "argv")
GOOD = b'{"id": 1, "ok": {"group": {"utf8": "g"}, "payload": {"b64": "/w=="}}}'


def malformed(number: int) -> bytes:
    """A line that is wrong somehow: cut off, of wrong types, with unknown names, huge, not UTF-8, nested."""
    chance = random.Random(number)
    match number % 8:
        case 0:
            return GOOD[: chance.randrange(len(GOOD))]
        case 1:
            at = chance.randrange(len(GOOD))
            return GOOD[:at] + bytes([chance.randrange(256)]) + GOOD[at + chance.randrange(2) :]
        case 2:
            return chance.randbytes(chance.randrange(1, 60)).replace(b"\n", b"")
        case 3:
            return b"[" * chance.choice([5, 2_000, 200_000])
        case 4:
            return b'{"id": 1, "ok": ' + chance.choice([b"1" * 5_000, b"NaN", b"-Infinity", b"1e999", b"'1'"]) + b"}"
        case 5:
            return json.dumps({"id": 1, "op": chance.choice([*ARGV, "open", "drop-database", 7])}).encode()
    members = {chance.choice(NAMES): chance.choice(VALUES) for _ in range(chance.randrange(4))}
    return json.dumps({"id": 1, **members}).encode()


def refusal(read: Callable[..., object], *args: object) -> PortError | None:
    """What the reader says of it; None if it takes it. Anything but a PortError goes through."""
    try:
        read(*args)
    except PortError as error:
        return error
    return None


def test_every_malformed_answer_is_named() -> None:
    """The readers of the protocol take it, or refuse it with a sentence; they never fall over it."""
    refused = []
    for number in range(LINES):
        line = malformed(number)
        if error := refusal(parse, line):
            assert "a line" in str(error)
            assert len(str(error)) < 1_200, "a message that nobody can read"
            refused.append(error)
            continue
        answer = parse(line)
        for read, args in ((Hello.read, ()), (reply, ("claim",)), (reply, ("ack",)), (read_state, ())):
            if error := refusal(read, answer, *args):
                assert len(str(error)) > 20
                refused.append(error)
    assert len(refused) > LINES


def test_every_malformed_request_is_named() -> None:
    """So does the oracle, which is sent lines by adapters under construction: a fault, or an error, that says why."""
    oracle = Oracle()
    for number in range(LINES):
        answer = oracle.answer(malformed(number))
        assert answer.keys() & {"ok", "error", "fault", "state"}, answer
        if "fault" in answer:
            assert len(answer["fault"]) > 10, answer


def test_a_process_that_answers_so(tmp_path: Path) -> None:
    """The runner reads such lines from a real process, and asks the next one after each."""
    lines = [line for number in range(0, 800) if (line := malformed(number))]
    (tmp_path / "lines").write_bytes(b"\n".join(lines) + b"\n")
    script = tmp_path / "adapter.py"
    script.write_text(
        "import sys\nlines = open(sys.argv[1], 'rb')\n"
        "for _ in sys.stdin:\n    sys.stdout.buffer.write(lines.readline())\n    sys.stdout.flush()\n"
    )
    process = Process(f"{sys.executable} {script} {tmp_path / 'lines'}", 10)
    wrong = 0
    try:
        for _ in lines:
            if error := refusal(lambda: reply(process.ask({"op": "claim"}), "claim")):
                wrong += 1
                assert error.kind in ("garbage", "protocol")
        with pytest.raises(PortError, match=r"crash|hang|garbage"):
            process.ask({"op": "claim"})
    finally:
        process.kill()
        process.end()
    assert wrong > len(lines) // 2
