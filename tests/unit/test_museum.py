"""The museum of bugs: what re-creates each is there, and does convict it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.ports.test_checks import CONTROLS
from tests.ports.zoo import PORTS, WRONG
from tests.support.cases import CASES, CHECKS, CORRECTIONS, SPEC, Case
from tests.support.designs import Design, designs, lay_over
from tests.support.fake import FakeHost
from tests.support.session import PACKAGE_LUA
from tests.support.shifted import replay
from tests.support.witness import LuaFiles, Scripts

ROOT = SPEC.parent
PAGE = (SPEC / "museum.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (M[0-9]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
LAYERS = re.findall(r"`([a-z]+)` [a-z]", PAGE[PAGE.index("**How a bug is found**") : PAGE.index("**Where to look**")])
DESIGNS = {design.name: design for design in designs()}
TRACES = {case.id: case for case in CASES}
KNOWN_CHECKS = {check.id for check in CHECKS}
CONVICTED = {(check, port) for check, port, *_ in CONTROLS}


def exhibits(page: str) -> dict[str, list[str]]:
    """What re-creates each bug of a page, by its id."""
    return {row[0]: re.findall(r"`([^`]+)`", row[4]) for row in ROW.findall(page)}


@cache
def collected(files: tuple[str, ...]) -> set[str]:
    """The tests that pytest finds in these files, each with and without its parameters."""
    line = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {line for line in done.stdout.splitlines() if "::" in line}
    return found | {test.partition("[")[0] for test in found}


def complaints(page: str) -> list[str]:
    """What is wrong with a page, but for the tests it names."""
    said = []
    if sorted(row[0] for row in ROW.findall(page)) != [f"M{number + 1:02}" for number in range(page.count("\n| M"))]:
        said.append("the rows are not M01, M02 …, each once and of five columns")
    for name, _, found_by, due, _ in ROW.findall(page):
        said += [f"{name}: {layer} is no way to find a bug" for layer in (found_by, due) if layer not in LAYERS]
    for name, shown in exhibits(page).items():
        said += [f"{name}: {what}: there is no such exhibit" for what in shown if not exists(what)]
        said += [] if shown else [f"{name}: nothing re-creates it"]
        said += [f"{name}: {what}" for what in unconvicted(shown)]
    return said


def exists(what: str) -> bool:
    """Whether there is such a case, check, design or port. That a test exists, pytest says."""
    kind, _, name = what.rpartition("/")
    known = {"": {*TRACES, *KNOWN_CHECKS}, "designs": DESIGNS, "zoo": WRONG}
    return "::test_" in name if kind.startswith("tests") else name in known.get(kind, ())


def names(shown: list[str], kind: str) -> list[str]:
    """The exhibits of a kind, by name."""
    return [what.removeprefix(kind) for what in shown if what.startswith(kind)]


def unconvicted(shown: list[str]) -> list[str]:
    """The designs and ports that no case or check beside them convicts, by the tests of ports that run them."""
    cases = {what for what in shown if "/" not in what}
    found = [DESIGNS[name] for name in names(shown, "designs/") if name in DESIGNS]
    plain = [design.name for design in found if design.shows == "plain" and not cases & {*TRACES}]
    special = [design.name for design in found if design.shows != "plain"]
    ports = [name for name in names(shown, "zoo/") if name in WRONG]
    special = [name for name in special if not {(case, name) for case in cases} & CONVICTED]
    return [
        *(f"no case beside it convicts {name}" for name in plain + special),
        *(f"no case beside it convicts {name}" for name in ports if not {*WRONG[name].rejected_by} & cases),
    ]


def pairs(page: str) -> list[tuple[Case, Design]]:
    """Each trace of a row with each design beside it that shows on any server."""
    return [
        (TRACES[case], DESIGNS[name])
        for shown in exhibits(page).values()
        for case in shown
        for name in names(shown, "designs/")
        if case in TRACES and DESIGNS[name].shows == "plain"
    ]


def test_the_page_is_in_order() -> None:
    """Every row has an id, two ways to find a bug, and what re-creates it; what convicts it stands beside it."""
    assert complaints(PAGE) == []


def test_every_correction_is_shown() -> None:
    """Each fault of the original has a row, and a test on real servers in it."""
    told = {row[1].split(".")[0]: row[4] for row in ROW.findall(PAGE) if row[1].split(".")[0] in CORRECTIONS}
    assert set(told) == set(CORRECTIONS)
    assert [name for name in told if f"test_errata.py::test_{name.lower()}`" not in told[name]] == []


def test_every_test_of_the_page_is_run() -> None:
    """Pytest finds each of them, with the parameters that are named."""
    named = [what for shown in exhibits(PAGE).values() for what in shown if what.startswith("tests/")]
    files = tuple(sorted({test.partition("::")[0] for test in named}))
    assert [test for test in named if test not in collected(files)] == []
    assert "tests/unit/test_museum.py::test_gone" not in collected(files)


@pytest.mark.parametrize(("case", "design"), pairs(PAGE), ids=lambda one: getattr(one, "id", getattr(one, "name", "")))
def test_the_bug_is_convicted(case: Case, design: Design, tmp_path: Path) -> None:
    """The trace beside a design fails on it, and passes on the package's scripts."""
    assert replay(case.operations, [Scripts(FakeHost(), LuaFiles(lay_over(design, tmp_path)))]) is not None
    assert replay(case.operations, [Scripts(FakeHost(), LuaFiles(PACKAGE_LUA))]) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("| M03 |", "| M33 |", "the rows are not M01, M02"),
        ("| review | machine | `E2-1`", "| luck | machine | `E2-1`", "M02: luck is no way to find a bug"),
        ("`E2-1` ", "`E2-9` ", "M02: E2-9: there is no such exhibit"),
        ("`designs/park-same-token`", "`designs/park-gone`", "M02: designs/park-gone: there is no such exhibit"),
        ("`zoo/HalfACharacter`", "`zoo/Right`", "zoo/Right: there is no such exhibit"),
        ("`E1-2` ", "`E1-1` ", "M01: no case beside it convicts two-step-nack"),
        ("`E2-1` ", "", "M02: no case beside it convicts park-same-token"),
        ("`ARG-3b` `zoo/BlamesNow`", "`ARG-3a` `zoo/BlamesNow`", "no case beside it convicts BlamesNow"),
        ("`tests/ports/test_zoo.py::test_wrong_port_is_rejected`", "the zoo", "nothing re-creates it"),
    ],
)
def test_a_page_that_is_wrong_is_refused(old: str, new: str, says: str) -> None:
    """A row out of order, an unknown way, an exhibit that is gone, one that nothing convicts, and a bug without any."""
    assert PAGE.count(old) == 1
    assert "Right" in PORTS
    assert any(says in what for what in complaints(PAGE.replace(old, new)))


def test_a_trace_that_convicts_nothing_is_found(tmp_path: Path) -> None:
    """Not every case fails on every design: one of another clause passes."""
    design = DESIGNS["spoilt-prio-trusted"]
    assert replay(TRACES["ACK-1a"].operations, [Scripts(FakeHost(), LuaFiles(lay_over(design, tmp_path)))]) is None
