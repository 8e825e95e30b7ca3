"""The page of the tests: its folders, and the table of reports and the tests that answer them."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.traceability import read_tests, references

TESTS = Path(__file__).parents[1]
PAGE = (TESTS / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (B\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_every_report_has_its_row() -> None:
    """The ids above the table are those of its rows, each once and in order, and every row names a test."""
    listed = re.findall(r"B\d\d", PAGE[PAGE.index("as kinds:") : PAGE.index("Where one of several")])
    rows = ROW.findall(PAGE)
    assert [row[0] for row in rows] == listed == sorted(set(listed))
    assert [row[0] for row in rows if not references(row[3])] == []
    assert PAGE.count("\n| B") == len(rows)


def test_tests_name_their_reports() -> None:
    """A test of `faults` that names a report in its docstring stands in the row of that report."""
    answers = {row[0]: references(row[3]) for row in ROW.findall(PAGE)}
    for test in read_tests():
        if test.path.startswith("faults/") and test.name.startswith("test_"):
            for report in {name for name in test.ids if name.startswith("B")}:
                assert str(test) in answers[report], f"{report} has no {test}"


def test_every_folder_is_told() -> None:
    """The page has a line for each folder of the tests that holds any."""
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*/README.md"))}
    folders |= {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)) == folders
