"""What came of each case on each system: what the summary, the reports and the known failures are made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from model.notation import write
from model.operation import Fault, Json, Operation, Reply

PASSED, FAILED, KNOWN, NOT_ASKED = "passed", "failed", "known failure", "not asked"
STATUSES = (PASSED, FAILED, KNOWN, NOT_ASKED)
# What an answer that is none can be; the first word of its fault.
FAULTS = ("start", "hang", "crash", "garbage", "oversized", "protocol", "unsupported")
KINDS = ("reply", "keys", *FAULTS, "fault", "invariant", "check")
FINDING = "at level full it fails: "  # in the reason why a check was not asked at level core
LONGEST_TEXT = 1_000  # characters of what a port answered, as it is shown


@dataclass(frozen=True)
class Failure:
    """The first divergence of a case.

    ``steps`` are the lines of the trace with the replies due, the last of them the one that diverged; ``got`` is its
    reply. ``before``, ``want`` and ``have`` are key spaces: before that step, what it should leave, and what it left.
    """

    kind: str
    steps: tuple[str, ...] = ()
    expected: str = ""
    got: str = ""
    keys: tuple[str, ...] = ()
    before: Json | None = None
    want: Json | None = None
    have: Json | None = None
    rules: tuple[str, ...] = ()
    report: str = ""  # all of it, as the terminal shows it
    stderr: str = ""  # the adapter's last lines
    command: str = ""  # that runs this case alone


@dataclass(frozen=True)
class Outcome:
    """One case on one system: its id and clauses, the sentence on what goes wrong without it, and what came of it."""

    case: str
    clauses: tuple[str, ...]
    sentence: str
    system: str
    status: str
    why: str = ""  # it was not asked, or the failure is known
    failure: Failure | None = field(default=None, repr=False)


def kind_of(got: Reply, *, agrees: bool) -> str:
    """What kind of failure it is."""
    if isinstance(got, Fault):
        first = got.what.split(":", 1)[0]
        return first if first in FAULTS else "fault"
    return "keys" if agrees else "reply"


def cut(text: str) -> str:
    """A text of somebody else's, short enough to be read."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"


def lines_of(steps: list[tuple[Operation, Reply]]) -> tuple[str, ...]:
    """The steps of a trace as lines of the notation, each with the reply due."""
    return tuple(write(operation, reply) for operation, reply in steps)
