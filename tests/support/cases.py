"""The named cases: the traces written in the pages of ``spec/``, run as they stand.

A case is a fenced block whose first line is ````` ```trace ID: sentence`````, in the notation of ``model/notation.py``.
A line ``# the original differs: how`` stands under the step at which the original design first does something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from model.notation import read_trace
from model.operation import Operation

SPEC = Path(__file__).parents[2] / "spec"
_BLOCK = re.compile(r"^```trace ([\w-]+): (.+?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^## (E\d+) (.+)$", re.MULTILINE)
ORIGINAL_DIFFERS = "# the original differs"


@dataclass(frozen=True)
class Case:
    """One trace of the spec: its permanent id, what it says, each step with the reply that stands there."""

    id: str
    sentence: str
    steps: tuple[tuple[Operation, str | None], ...]
    original_differs_at: int | None  # step, from 1

    @property
    def operations(self) -> list[Operation]:
        """The trace without its replies."""
        return [operation for operation, _ in self.steps]


def read_cases(text: str) -> list[Case]:
    """The cases of a page, in order. Raises ``Malformed`` for a line that cannot be read."""
    return [_case(*match.groups()) for match in _BLOCK.finditer(text)]


def _case(name: str, sentence: str, body: str) -> Case:
    lines = body.splitlines()
    differs = next((at for at, line in enumerate(lines) if line.startswith(ORIGINAL_DIFFERS)), None)
    at = len(read_trace(lines[:differs])) if differs is not None else None
    return Case(name, sentence, tuple(read_trace(lines)), at)


ERRATA = (SPEC / "errata.md").read_text(encoding="utf-8")
CORRECTIONS = dict(_HEADING.findall(ERRATA))  # E1 … → title
CASES = read_cases(ERRATA)
