"""The page of the tests: its folders, and the table of reports and the tests that answer them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (B\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
REFERENCE = re.compile(r"`tests/([\w/]+\.py)::(\w+)`(?: \(([^)]*)\))?")


def functions(path: str) -> set[str]:
    """The functions at the top of a test file; none if it does not exist."""
    file = TESTS / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def absent(page: str) -> list[str]:
    """The tests and checks that a page names and that do not exist."""
    found = REFERENCE.findall(page)
    named = [(path, name) for path, test, checks in found for name in (test, *re.findall(r"`(\w+)`", checks))]
    return [f"{path}::{name}" for path, name in named if name not in functions(path)]


def test_every_report_has_its_row() -> None:
    """The ids above the table are those of its rows, each once and in order, and every row names a test."""
    listed = re.findall(r"B\d\d", PAGE[PAGE.index("as kinds:") : PAGE.index("Where one of several")])
    rows = ROW.findall(PAGE)
    assert [row[0] for row in rows] == listed == sorted(set(listed))
    assert [row[0] for row in rows if not REFERENCE.search(row[3])] == []
    assert PAGE.count("\n| B") == len(rows)


def test_every_test_named_exists() -> None:
    """Each test and check of the table is a function of its file."""
    assert absent(PAGE) == []


@pytest.mark.parametrize(
    "reference",
    [
        "`tests/faults/test_errata.py::test_e17`",
        "`tests/faults/test_gone.py::test_e1`",
        "`tests/faults/test_reports_leases.py::test_leases` (`stale_ack`, `gone`)",
    ],
)
def test_a_test_that_is_gone_is_found(reference: str) -> None:
    """A test, a file or a check that does not exist is named."""
    assert len(absent(f"| B01 | report | seen | {reference} |")) == 1


def test_tests_name_their_reports() -> None:
    """A test of `faults` that names a report in its docstring stands in the row of that report."""
    answers = {row[0]: {f"{path}::{test}" for path, test, _ in REFERENCE.findall(row[3])} for row in ROW.findall(PAGE)}
    for file in (TESTS / "faults").glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named = re.match(r"(B\d\d(?:, B\d\d)*): ", ast.get_docstring(node) or "")
                for report in named[1].split(", ") if named else ():
                    assert f"faults/{file.name}::{node.name}" in answers[report], f"{report} has no {node.name}"


def test_every_folder_is_told() -> None:
    """The page has a line for each folder of the tests that holds any."""
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*/README.md"))}
    folders |= {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)) == folders
