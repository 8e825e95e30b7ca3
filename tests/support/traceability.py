"""Which tests hold which clause of the spec, in both directions, read from the pages and from the docstrings.

A test names what it checks at the start of its docstring, before a colon: clauses and corrections of the spec, and
reports of ``tests/README.md``: ``B61, FAIL-1: a client that repeats by itself publishes twice.`` So does a function
of a test file that a test of it runs. The cases and checks of the spec name their clauses in the pages.

``python -m tests.support.traceability`` writes ``spec/clauses.md`` anew; a test fails while it differs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.cases import SPEC, Clause, Page, read_pages

TESTS = Path(__file__).parents[1]
INDEX = SPEC / "clauses.md"
BY_CAUSE = ("errata.md", "failures.md")
"""The pages whose clauses tell of accidents: each is held by a test or check that has the accident happen."""
_HEAD = re.compile(r"([A-Z]+-?[0-9]+(?:, [A-Z]+-?[0-9]+)*)(?:, kept)?: ")
_REFERENCE = re.compile(r"`tests/([\w/]+\.py)::(\w+)[^`\n]*`(?: \(([^)\n]*)\))?")


@dataclass(frozen=True)
class Naming:
    """A function of a test file that names what it checks."""

    path: str
    """Of its file, in the folder of the tests."""
    name: str
    ids: tuple[str, ...]
    runs: bool
    """Whether it is a test, or is used by its file."""

    def __str__(self) -> str:
        return f"tests/{self.path}::{self.name}"


def named(docstring: str) -> list[str]:
    """The ids with which a docstring begins."""
    head = _HEAD.match(docstring)
    return head[1].split(", ") if head else []


def functions(path: Path) -> dict[str, str]:
    """The functions at the top of a file, with their docstrings; none if there is no such file."""
    if not path.is_file():
        return {}
    found = ast.parse(path.read_text(encoding="utf-8")).body
    return {f.name: ast.get_docstring(f) or "" for f in found if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)}


def read_tests(folder: Path = TESTS) -> list[Naming]:
    """All tests of a folder that name something."""
    found = []
    for file in sorted(folder.rglob("test_*.py")):
        used = {node.id for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Name)}
        for name, docstring in functions(file).items():
            if ids := named(docstring):
                runs = name.startswith("test_") or name in used
                found.append(Naming(file.relative_to(folder).as_posix(), name, tuple(ids), runs))
    return found


def absent(text: str, folder: Path = TESTS) -> list[str]:
    """The tests, and in brackets behind them the checks of the same file, that a text names and that do not exist."""
    found = [(path, name) for path, test, checks in _REFERENCE.findall(text) for name in (test, *_words(checks))]
    return [f"tests/{path}::{name}" for path, name in found if name not in functions(folder / path)]


def references(text: str) -> list[str]:
    """The tests that a text names."""
    return [f"tests/{path}::{test}" for path, test, _ in _REFERENCE.findall(text)]


def _words(checks: str) -> list[str]:
    return re.findall(r"`(\w+)`", checks)


def complaints(page: Page, tests: Sequence[Naming], reports: Iterable[str] = ()) -> list[str]:
    """What is wrong between clauses and tests: a clause that nothing holds, a test that names no clause there is."""
    known = {*(clause.id for clause in page.clauses), *reports}
    said = [f"{test} names {name}, which no page has" for test in tests for name in test.ids if name not in known]
    said += [f"{test} names what it checks, and no test of its file runs it" for test in tests if not test.runs]
    for clause in page.clauses:
        cases, checks, by_tests = _holding(clause, page, tests)
        if not cases + checks + by_tests:
            said.append(f"{clause.id} ({clause.page}) has no case, no check and no test")
        elif clause.page in BY_CAUSE and not checks + by_tests:
            said.append(
                f"{clause.id} ({clause.page}) has traces only: let the docstring of the test that has it happen, in"
                f" whatever folder, begin with `{clause.id}: `, or write a check under the clause"
            )
    return said


def _holding(clause: Clause, page: Page, tests: Sequence[Naming]) -> tuple[list[str], list[str], list[str]]:
    """The cases, the checks and the tests of a clause."""
    return (
        [case.id for case in page.cases if clause.id in case.clauses],
        [check.id for check in page.checks if clause.id in check.clauses],
        [str(test) for test in tests if clause.id in test.ids],
    )


def index(page: Page, tests: Sequence[Naming]) -> str:
    """The page of all clauses, each with what holds it."""
    lines = [
        "# Every clause, and what holds it",
        "",
        "Written by `tox run -e vectors` from the other pages and from the docstrings of the tests.",
        "",
        "**Cases** are traces, run as they stand on every system under test. **Checks** are done to every port, and",
        "**tests** to this project: what no trace can show happens there.",
    ]
    for name in dict.fromkeys(clause.page for clause in page.clauses):
        lines += ["", f"## {name}", "", "| clause | cases | checks and tests |", "| --- | --- | --- |"]
        for clause in page.clauses:
            if clause.page == name:
                cases, checks, by_tests = _holding(clause, page, tests)
                others = [*checks, *(f"`{test}`" for test in by_tests)]
                title = clause.title.replace("|", "\\|")
                lines.append(f"| [{clause.id}]({name}) {title} | {' '.join(cases)} | {'<br>'.join(others)} |")
    counts = f"{len(page.clauses)} clauses, {len(page.cases)} cases, {len(page.checks)} checks, "
    return "\n".join([*lines, "", f"{counts}{sum(_of_spec(test, page) for test in tests)} tests beside them.", ""])


def _of_spec(test: Naming, page: Page) -> bool:
    return any(clause.id in test.ids for clause in page.clauses)


def spec() -> Page:
    """All pages of the spec."""
    return read_pages(sorted(SPEC.glob("*.md")))


def main() -> None:
    """Writes the page."""
    INDEX.write_text(index(spec(), read_tests()), encoding="utf-8")
    print(f"written: {INDEX}")


if __name__ == "__main__":
    main()
