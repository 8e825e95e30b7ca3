"""What an examination finds, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Severity(IntEnum):
    """How bad it is; also the exit code of the command."""

    OK = 0
    """As it should be, or good to know."""
    WARNING = 1
    """Something can go wrong under circumstances that the finding names."""
    ERROR = 2
    """Something does go wrong, or will."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found. `subject` is the key, group or setting that it is about."""

    code: str
    severity: Severity
    subject: str
    what: str
    why: str = ""
    fix: str = ""
    healed: bool = False

    def to_json(self) -> dict[str, str | bool]:
        """The finding as a JSON object."""
        return {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "subject": self.subject,
            "what": self.what,
            "why": self.why,
            "fix": self.fix,
            "healed": self.healed,
        }


def worst(findings: list[Finding]) -> Severity:
    """The severity of the worst of those that were not healed."""
    return max((finding.severity for finding in findings if not finding.healed), default=Severity.OK)
