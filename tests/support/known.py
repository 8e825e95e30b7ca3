"""Known failures: cases that are expected to fail, each with its kind and the reason, in a TOML file.

::

    [CLAIM-7a]
    kind = "reply"
    reason = "ties are broken by arrival until our issue 12 is done"

They are executed all the same. One that passes, fails in another way, or matches no case that ran, fails the run.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.support.outcome import FAILED, KINDS, KNOWN, PASSED, Failure, Outcome


class KnownError(ValueError):
    """The file cannot be used; the message says which entry, and why."""


@dataclass
class Known:
    """The entries of a file, and those that no case has matched so far."""

    entries: dict[str, tuple[str, str]] = field(default_factory=dict)  # case → kind, reason
    unmatched: set[str] = field(default_factory=set)
    narrowed: bool = False  # only some cases were to run: an entry for another is no mistake

    @classmethod
    def read(cls, path: Path) -> Known:
        """Reads the file. Raises KnownError."""
        try:
            found = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise KnownError(f"{path}: {error}") from None
        entries = {}
        for case, entry in found.items():
            if not isinstance(entry, dict) or entry.keys() != {"kind", "reason"}:
                raise KnownError(f"{path}: [{case}] has a kind and a reason, and nothing else")
            if entry["kind"] not in KINDS:
                raise KnownError(f"{path}: [{case}] kind is one of {', '.join(KINDS)}, not {entry['kind']!r}")
            if not isinstance(entry["reason"], str) or not entry["reason"].strip():
                raise KnownError(f"{path}: [{case}] has no reason; say why it fails, and until when")
            entries[case] = (entry["kind"], entry["reason"])
        return cls(entries, set(entries))

    def judge(self, outcome: Outcome) -> Outcome:
        """The outcome in the light of the entry for its case."""
        if outcome.case not in self.entries or outcome.status not in (PASSED, FAILED):
            return outcome
        self.unmatched.discard(outcome.case)
        kind, reason = self.entries[outcome.case]
        if outcome.failure is None:
            text = f"passes, and is listed as a known failure ({reason}): take the entry out"
            return replace(outcome, status=FAILED, failure=Failure("check", report=text))
        if outcome.failure.kind != kind:
            text = f"is a known failure of kind {kind} ({reason}), and failed by {outcome.failure.kind}"
            failure = replace(outcome.failure, report=f"{text}\n\n{outcome.failure.report}")
            return replace(outcome, failure=failure)
        return replace(outcome, status=KNOWN, why=reason)
