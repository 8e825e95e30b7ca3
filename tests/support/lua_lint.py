"""The lint of the Lua: ``python -m tests.support.lua_lint FILE…`` (exit 0: clean, 1: findings, 2: no file).

A script must run alike on every server and on fakeredis, so it keeps to a subset that can be checked as it lies: what
a file may use, what it hands to Redis, what it answers, and in which order it reads the clock and writes. The rules
themselves are in ``lua_rules``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.lua_rules import RULES, Script
from tests.support.lua_tree import LuaSyntaxError


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A rule broken at a line, counted from 1."""

    line: int
    rule: str
    message: str


def lint(name: str, source: str) -> list[Finding]:
    """What breaks the rules in a script of that name, in the order of its lines."""
    try:
        script = Script(name, source)
    except LuaSyntaxError as error:
        return [Finding(1, "syntax", f"this is no Lua: {error}")]
    found = set()
    for rule_name, check in RULES.items():
        for where, message in check(script):
            line = where if isinstance(where, int) else script.tree.line(where)
            found.add(Finding(line, rule_name, message))
    return sorted(found)


def main(files: Sequence[str]) -> int:
    """Prints the findings in these files, as ``file:line: rule: what and how to mend``, and answers the exit code."""
    if not files:
        print("usage: python -m tests.support.lua_lint FILE…", file=sys.stderr)
        return 2
    found = 0
    for file in files:
        path = Path(file)
        for finding in lint(path.stem, path.read_text(encoding="utf-8")):
            print(f"{file}:{finding.line}: {finding.rule}: {finding.message}")
            found += 1
    print(f"files: {len(files)}, rules: {len(RULES)}, findings: {found}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
