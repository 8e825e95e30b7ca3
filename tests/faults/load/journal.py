"""What a process writes down of its calls, so that it can be read after a SIGKILL: a line before, and a line after."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Outcome = Literal["done", "not", "refused", "unknown"]
"""`not`: False or None was the answer. `refused`: the server answered with an error, so that nothing was done."""

NEVER = 1 << 63


@dataclass(slots=True)
class Call:
    """A call, and what came of it; instants are nanoseconds of a clock that all processes of the machine share."""

    worker: str
    op: str
    asked: int
    group: str = ""
    text: str = ""
    token: str = ""
    done: int = NEVER
    outcome: Outcome = "unknown"
    error: str = "its process was killed"


class Journal:
    """The file of one process. Every line is one write, and so whole or not there."""

    def __init__(self, path: Path) -> None:
        """Begins it."""
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._number = 0

    def ask(self, op: str, group: str = "", text: str = "", token: str = "") -> int:
        """A call is about to be made; its number."""
        self._number += 1
        self._write(self._number, op, time.monotonic_ns(), group, text, token)
        return self._number

    def answer(self, number: int, outcome: Outcome, error: str = "", lease: tuple[str, ...] = ()) -> None:
        """What came of it; of a claim also group, text and token of the lease."""
        self._write(number, "", time.monotonic_ns(), outcome, error, *lease)

    def _write(self, *words: str | int) -> None:
        os.write(self._file, json.dumps(words).encode() + b"\n")


def read(folder: Path) -> list[Call]:
    """All calls of all processes, in the order in which they were made."""
    calls = [call for path in sorted(folder.glob("*.journal")) for call in _calls(path)]
    return sorted(calls, key=lambda call: call.asked)


def _calls(path: Path) -> Iterator[Call]:
    calls: dict[int, Call] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        number, op, at, *words = json.loads(line)
        if op:
            calls[number] = Call(path.stem, op, at, *words)
            continue
        call, (outcome, error, *lease) = calls[number], words
        call.done, call.outcome, call.error = at, outcome, error
        if lease:
            call.group, call.text, call.token = lease
    yield from calls.values()
