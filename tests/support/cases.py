"""The spec as data: its clauses, and the cases that stand under them, run as they are written.

A clause is a heading that begins with its permanent id, ``### CLAIM-7 Title``. A line ``Capability: `name` `` under it
says which capability a port needs to keep it. Under it stand its cases, which are fenced blocks:

``trace ID: sentence``
    in the notation of ``model/notation.py``, each step with its reply. A line ``# the original differs: how`` stands
    under the step at which the original design first does something else, ``# also CLAUSE, …`` names further clauses
    that the case holds, and ``# capability: name`` one that this case alone needs.
    ``# level: full`` stands where the original cannot be asked.
``check ID: sentence``
    what no trace can show (a full server, a lost reply), in words; ``tests/conformance`` does it by its id.

The id of a case is its clause's and a letter, ``CLAIM-7a``, or a number under a correction, ``E3-2``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from model.notation import read_trace
from model.operation import CAPABILITIES, Malformed, Operation

SPEC = Path(__file__).parents[2] / "spec"
_HEADING = re.compile(r"^#{2,3} ([A-Z]+-?[0-9]+) (.+)$", re.MULTILINE)
_ANY_HEADING = re.compile(r"^#{2,3} ", re.MULTILINE)
_BLOCK = re.compile(r"^```(trace|check) ([\w-]+): (.+?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CAPABILITY = re.compile(r"^Capability: `([\w-]+)`", re.MULTILINE)
_ALSO = re.compile(r"^# also (.+)$", re.MULTILINE)
_OWN_CAPABILITY = re.compile(r"^# capability: ([\w-]+)$", re.MULTILINE)
ORIGINAL_DIFFERS = "# the original differs"
UNASKED = "# level: full"


@dataclass(frozen=True)
class Clause:
    """One promise: its permanent id, its title, the page it stands on, and what a port needs to keep it."""

    id: str
    title: str
    page: str
    capability: str | None = None


@dataclass(frozen=True)
class Case:
    """One trace: its permanent id, what goes wrong without it, and each step with the reply that stands there."""

    id: str
    sentence: str
    steps: tuple[tuple[Operation, str | None], ...]
    original_differs_at: int | None  # step, from 1
    clauses: tuple[str, ...] = ()
    capability: str | None = None
    unasked: bool = False  # of the original design

    @property
    def operations(self) -> list[Operation]:
        """The trace without its replies."""
        return [operation for operation, _ in self.steps]

    @property
    def level(self) -> str:
        """``core`` where the original design does the same, else ``full``."""
        return "core" if self.original_differs_at is None and not self.unasked else "full"


@dataclass(frozen=True)
class Check:
    """One case that no trace can show: its id, what goes wrong without it, and what is done, in words."""

    id: str
    sentence: str
    text: str
    clauses: tuple[str, ...] = ()
    capability: str | None = None

    @property
    def level(self) -> str:
        """``full`` where it takes a correction of the original design."""
        return "full" if self.capability else "core"


@dataclass(frozen=True)
class Page:
    """What one page of the spec holds."""

    clauses: tuple[Clause, ...]
    cases: tuple[Case, ...]
    checks: tuple[Check, ...]


def read_page(text: str, name: str = "page") -> Page:
    """The clauses and cases of a page, in order. Raises ``Malformed`` for what cannot be read, saying where."""
    found = list(_sections(text, name))
    cases = [case for _, under in found for case in under]
    if len(cases) != len(_BLOCK.findall(text)):
        raise Malformed(f"{name}: a case stands under no clause")
    return Page(
        tuple(clause for clause, _ in found),
        tuple(case for case in cases if isinstance(case, Case)),
        tuple(case for case in cases if isinstance(case, Check)),
    )


def _sections(text: str, name: str) -> Iterator[tuple[Clause, list[Case | Check]]]:
    for heading in _HEADING.finditer(text):
        after = _ANY_HEADING.search(text, heading.end())
        body = text[heading.end() : after.start() if after else len(text)]
        capability = _known(_CAPABILITY.search(_BLOCK.sub("", body)), f"{name}: {heading[1]}")
        clause = Clause(heading[1], heading[2].strip(), name, capability)
        yield clause, [_case(clause, *block.groups()) for block in _BLOCK.finditer(body)]


def _case(clause: Clause, kind: str, name: str, sentence: str, body: str) -> Case | Check:
    where = f"{clause.page}: {name}"
    if not re.fullmatch(re.escape(clause.id) + ("[a-z]" if "-" in clause.id else "-[0-9]+"), name):
        raise Malformed(f"{where}: the id of a case under {clause.id} begins with that and one letter")
    also = _ALSO.search(body)
    clauses = (clause.id, *(also[1].split(", ") if also else ()))
    capability = _known(_OWN_CAPABILITY.search(body), where) or clause.capability
    if kind == "check":
        return Check(name, sentence, body.strip(), clauses, capability)
    lines = body.splitlines()
    differs = next((at for at, line in enumerate(lines) if line.startswith(ORIGINAL_DIFFERS)), None)
    try:
        at = len(read_trace(lines[:differs])) if differs is not None else None
        return Case(name, sentence, tuple(read_trace(lines)), at, clauses, capability, UNASKED in lines)
    except Malformed as error:
        raise Malformed(f"{where}: {error}") from None


def _known(match: re.Match[str] | None, where: str) -> str | None:
    if match is None:
        return None
    if match[1] not in CAPABILITIES:
        raise Malformed(f"{where}: no such capability: {match[1]}; one of {', '.join(CAPABILITIES)}")
    return match[1]


def read_pages(paths: Iterable[Path]) -> Page:
    """All pages together. Raises ``Malformed`` where an id is used twice, or named and nowhere to be found."""
    pages = [read_page(path.read_text(encoding="utf-8"), path.name) for path in paths]
    clauses = tuple(clause for page in pages for clause in page.clauses)
    cases = tuple(case for page in pages for case in page.cases)
    checks = tuple(check for page in pages for check in page.checks)
    seen: set[str] = set()
    for name in [item.id for item in clauses] + [item.id for item in cases] + [item.id for item in checks]:
        if name in seen:
            raise Malformed(f"{name} is used twice")
        seen.add(name)
    known = {clause.id for clause in clauses}
    everything: list[Case | Check] = [*cases, *checks]
    for case in everything:
        if unknown := set(case.clauses) - known:
            raise Malformed(f"{case.id} names clauses that no page has: {', '.join(sorted(unknown))}")
    return Page(clauses, cases, checks)


_WHOLE = read_pages(sorted(SPEC.glob("*.md")))
CLAUSES = {clause.id: clause for clause in _WHOLE.clauses}
CASES = _WHOLE.cases
CHECKS = _WHOLE.checks
CORRECTIONS = {clause.id: clause.title for clause in _WHOLE.clauses if clause.page == "errata.md"}  # E1 … → title
