"""What a checker says of a history. That it cannot tell is no pass."""

from __future__ import annotations

from dataclasses import dataclass

ACCEPTED, REJECTED, UNKNOWN = "accepted", "rejected", "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of the three, why, and the group that shows it."""

    kind: str
    why: str
    group: bytes = b""

    def __str__(self) -> str:
        return f"{self.kind.upper()}: {self.why}"
