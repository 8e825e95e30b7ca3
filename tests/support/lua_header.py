"""The header of a script: what it takes, answers and costs, in one fixed grammar.

::

    -- redisq NAME: sentence.
    -- KEYS i name: text
    -- ARGV i name: form
    -- REPLY what: text
    -- ERROR CODE: text
    -- COST text

The parts come in this order. KEYS and ARGV are numbered from 1, REPLY is an integer or one of ``integer``, ``array``
and ``nil``, and COST stands once. The first line that is no comment ends the header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PARTS = ("KEYS", "ARGV", "REPLY", "ERROR", "COST")
TITLE = re.compile(r"-- redisq ([a-z]+): (\S.*\.)")
LINES = {
    "KEYS": re.compile(r"-- KEYS ([1-9]\d*) (\S+): (\S.*)"),
    "ARGV": re.compile(r"-- ARGV ([1-9]\d*) ([A-Za-z_]+): ((?:bytes|ms|integer|\d+\.\.\d+)(?:[,;] \S.*)?)"),
    "REPLY": re.compile(r"-- REPLY() (-?\d+|integer|array|nil): (\S.*)"),
    "ERROR": re.compile(r"-- ERROR() ([A-Z]+(?:_[A-Z]+)*): (\S.*)"),
    "COST": re.compile(r"-- COST()() (\S.*)"),
}
FORMS = {
    "KEYS": "-- KEYS i name: text",
    "ARGV": "-- ARGV i name: form, a form that begins with bytes, ms, integer or a range such as 1..99",
    "REPLY": "-- REPLY what: text, with an integer, or one of integer, array and nil",
    "ERROR": "-- ERROR CODE: text",
    "COST": "-- COST text",
}


class HeaderError(ValueError):
    """A header that is not of the grammar; the message begins with file and line."""


@dataclass(frozen=True, slots=True)
class Part:
    """One line of a header."""

    name: str
    """The name of a key or an argument, what a reply is, or the code of an error; empty for COST."""
    text: str
    line: int
    """Counted from 1."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the head of a script says."""

    name: str
    sentence: str
    keys: tuple[Part, ...]
    argv: tuple[Part, ...]
    replies: tuple[Part, ...]
    errors: tuple[Part, ...]
    cost: str
    lines: int
    """How many lines it takes."""

    @property
    def argv_names(self) -> tuple[str, ...]:
        """The names of the arguments, in their order."""
        return tuple(part.name for part in self.argv)


def parse(path: Path) -> Header:
    """The header of a script's file. Raises HeaderError, also if the file is not named as its header says."""
    header = parse_text(path.read_text(encoding="utf-8"), path.name)
    if path.name != f"{header.name}.lua":
        raise HeaderError(f"{path.name}:1: the header is that of {header.name}.lua")
    return header


def parse_text(source: str, file: str) -> Header:
    """The header at the top of a source. ``file`` is what errors name."""
    lines = []
    for line in source.split("\n"):
        if not line.startswith("--"):
            break
        lines.append(line)
    title = TITLE.fullmatch(lines[0]) if lines else None
    if title is None:
        raise HeaderError(f"{file}:1: a script begins with '-- redisq NAME: sentence.'")
    parts: dict[str, list[Part]] = {part: [] for part in PARTS}
    reached = 0
    for number, line in enumerate(lines[1:], 2):
        word = line.removeprefix("-- ").partition(" ")[0]
        if word not in PARTS:
            raise HeaderError(f"{file}:{number}: a line of the header begins with one of {', '.join(PARTS)}: {line!r}")
        if PARTS.index(word) < reached:
            raise HeaderError(f"{file}:{number}: {word} stands after {PARTS[reached]}; the order is {', '.join(PARTS)}")
        reached = PARTS.index(word)
        parts[word].append(_part(word, line, number, file, parts[word]))
    for word in PARTS:
        if not parts[word]:
            raise HeaderError(f"{file}:{len(lines)}: the header has no line '{FORMS[word]}'")
    if len(parts["COST"]) > 1:
        raise HeaderError(f"{file}:{parts['COST'][1].line}: COST stands once")
    keys, argv, replies, errors, cost = (tuple(parts[word]) for word in PARTS)
    return Header(title[1], title[2], keys, argv, replies, errors, cost[0].text, len(lines))


def _part(word: str, line: str, number: int, file: str, before: list[Part]) -> Part:
    match = LINES[word].fullmatch(line)
    if match is None or line != line.rstrip():
        raise HeaderError(f"{file}:{number}: not of the form '{FORMS[word]}': {line!r}")
    index, name, text = match.groups()
    if index and int(index) != len(before) + 1:
        raise HeaderError(f"{file}:{number}: {word} {index} stands where {word} {len(before) + 1} is due")
    if word != "COST" and any(name == part.name for part in before):
        raise HeaderError(f"{file}:{number}: {word} {name} stands twice")
    return Part(name, text, number)
