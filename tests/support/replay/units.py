"""A script and the commands it ran belong together: a unit, with the instants between which each command ran."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha1

from tests.support.replay.monitor import LUA, Entry

SLACK_US = 100_000
"""How far a command's own clock may lie from that of its line, where no other line is nearer: a process can be held up
between the two."""
LAG_US = 2_000
"""How old the clock may be that a server has cached when a command begins."""
SCRIPTS = frozenset((b"EVAL", b"EVALSHA", b"EVAL_RO", b"EVALSHA_RO", b"FCALL", b"FCALL_RO"))


@dataclass(frozen=True, slots=True)
class Span:
    """The milliseconds of the server's clock within which something happened."""

    first_ms: int
    last_ms: int


@dataclass(slots=True)
class Unit:
    """A command, or a script with the commands that it ran."""

    first: Entry
    before_us: int
    """When the line before it was written; 0 for the first."""
    nested: list[Entry] = field(default_factory=list)
    after_us: int | None = None
    """When the line after it was written; None if none came."""

    @property
    def is_script(self) -> bool:
        """Whether it is a script."""
        return self.first.name in SCRIPTS

    @property
    def sha(self) -> str:
        """The SHA-1 of its script; empty for what is none or is called by a name."""
        words = self.first.words
        if len(words) < 3 or not self.is_script or self.first.name.startswith(b"FCALL"):
            return ""
        by_sha = self.first.name.startswith(b"EVALSHA")
        return (
            words[1].lower().decode(errors="replace") if by_sha else sha1(words[1], usedforsecurity=False).hexdigest()
        )

    @property
    def argv(self) -> tuple[bytes, ...]:
        """The ARGV of its script."""
        words = self.first.words
        count = int(words[2]) if len(words) > 2 and words[2].isdigit() else 0
        return words[3 + count :]

    @property
    def commands(self) -> list[Entry]:
        """What it did to keys: the commands of the script, or itself."""
        return self.nested if self.is_script else [self.first]

    @property
    def span(self) -> Span:
        """When it ran."""
        last = self.nested[-1] if self.nested else self.first
        return Span(self._from_us() // 1000, self._until_us(last.at_us, self.after_us) // 1000)

    def spans(self) -> Iterator[tuple[Entry, Span]]:
        """Each command with the instants between which it ran. A server may stop its clock while a script runs."""
        commands = self.commands
        ends = [*(entry.at_us for entry in commands[1:]), self.after_us][: len(commands)]
        for entry, end_us in zip(commands, ends, strict=True):
            yield entry, Span(self._from_us() // 1000, self._until_us(entry.at_us, end_us) // 1000)

    def _from_us(self) -> int:
        return max(self.before_us - LAG_US, self.first.at_us - SLACK_US)

    @staticmethod
    def _until_us(at_us: int, end_us: int | None) -> int:
        return min(at_us + SLACK_US, max(at_us, end_us)) if end_us is not None else at_us + SLACK_US


class Units:
    """Puts lines together. A unit is whole when the next begins."""

    def __init__(self) -> None:
        self.open: Unit | None = None
        """The unit that is not whole yet."""
        self.last_us = 0
        """When the last line was written."""

    def add(self, entry: Entry) -> Unit | None:
        """Takes the next line; the unit that ended before it, if one did."""
        last_us, self.last_us = self.last_us, entry.at_us
        if entry.source == LUA:
            if self.open is not None:  # else the script began before the first line
                self.open.nested.append(entry)
            return None
        whole, self.open = self.open, Unit(entry, last_us)
        if whole is not None:
            whole.after_us = entry.at_us
        return whole

    def end(self) -> Unit | None:
        """The last unit, when nothing has come for a while."""
        whole, self.open = self.open, None
        return whole
