"""Every clause of the spec is held by something, and every test names clauses that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cases import SPEC, read_pages
from tests.support.traceability import INDEX, TESTS, absent, complaints, index, named, read_tests, spec

ROOT = SPEC.parent
REPORTS = re.findall(r"^\| (B\d\d) \|", (TESTS / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
PAGES = sorted([*SPEC.glob("*.md"), *ROOT.glob("*.md"), TESTS / "README.md"])
CLAUSES = """\
### FAIL-1 A publish that is repeated stores two messages

### FAIL-2 A worker that dies loses nothing

```check FAIL-2a: a message is lost
A worker is killed.
```

### FAIL-3 A lost lock frees its group

```trace FAIL-3a: it blocks
1000  claim token="A"                                    -> nil
# also FAIL-4
```

### FAIL-4 Nothing | more
"""
TEST = '''
def test_repeated():
    """{}: it is stored twice."""
'''


def found(folder: Path, page: str, *docstrings: str, test: str = TEST) -> list[str]:
    """What is said of a page of that name, whose tests begin their docstrings so."""
    (folder / page).write_text(CLAUSES, encoding="utf-8")
    for number, docstring in enumerate(docstrings):
        (folder / f"test_{number}.py").write_text(test.format(docstring), encoding="utf-8")
    return complaints(read_pages([folder / page]), read_tests(folder), ["B61"])


def test_every_clause_is_held_and_every_test_names_clauses_there_are() -> None:
    """The spec, corrections E1 to E16 and accidents included, agrees with the tests and the table of reports."""
    assert complaints(spec(), read_tests(), REPORTS) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    """A test that moved, or was renamed, is no longer named by its old name."""
    assert absent(page.read_text(encoding="utf-8")) == []


def test_the_index_is_what_pages_and_tests_say() -> None:
    """`spec/clauses.md` is word for word as it would be written now; `tox run -e vectors` writes it."""
    assert INDEX.read_text(encoding="utf-8") == index(spec(), read_tests())


def test_a_clause_that_nothing_holds_is_named(tmp_path: Path) -> None:
    """A clause without case, check and test is found; one that another's case holds as well is not."""
    assert found(tmp_path, "publish.md") == ["FAIL-1 (publish.md) has no case, no check and no test"]
    assert found(tmp_path, "publish.md", "B61, FAIL-1") == []


def test_an_accident_needs_more_than_a_trace(tmp_path: Path) -> None:
    """A clause of the failures or the errata with traces alone is found; one with a test or a check is not."""
    (said,) = found(tmp_path, "failures.md", "FAIL-1, FAIL-4")
    assert said.startswith("FAIL-3 (failures.md) has traces only: ")
    assert found(tmp_path, "failures.md", "FAIL-1, FAIL-4", "FAIL-3, kept") == []


@pytest.mark.parametrize("unknown", ["FAIL-5", "E17", "B99", "FAIL1"])
def test_a_test_that_names_an_unknown_clause_is_named(tmp_path: Path, unknown: str) -> None:
    """A clause, a correction or a report that no page has, and an id misspelt."""
    assert found(tmp_path, "publish.md", f"FAIL-1, {unknown}") == [
        f"tests/test_0.py::test_repeated names {unknown}, which no page has"
    ]


def test_a_check_that_no_test_runs_is_named(tmp_path: Path) -> None:
    """A function that names a clause counts if it is a test, or if its file uses it."""
    check = TEST.replace("test_repeated", "repeated")
    assert found(tmp_path, "publish.md", "FAIL-1", test=check) == [
        "tests/test_0.py::repeated names what it checks, and no test of its file runs it"
    ]
    assert found(tmp_path, "publish.md", "FAIL-1", test=check + "\nCHECKS = [repeated]\n") == []


def test_ids_stand_at_the_start_of_a_docstring() -> None:
    """They end with a colon; what only mentions a clause names none."""
    assert named("B61, FAIL-1: it is stored twice.") == ["B61", "FAIL-1"]
    assert named("E4, kept: the millisecond.") == ["E4"]
    assert named("A test of FAIL-1: it is stored twice.") == named("FAIL-1 is kept.") == []


def test_the_index_lists_what_holds_a_clause(tmp_path: Path) -> None:
    """Cases, those of other clauses included, then checks and tests; and how many there are."""
    found(tmp_path, "publish.md", "B61, FAIL-1, FAIL-3")
    lines = index(read_pages([tmp_path / "publish.md"]), read_tests(tmp_path)).splitlines()
    assert lines[lines.index("## publish.md") + 4 :] == [
        "| [FAIL-1](publish.md) A publish that is repeated stores two messages |  | `tests/test_0.py::test_repeated` |",
        "| [FAIL-2](publish.md) A worker that dies loses nothing |  | FAIL-2a |",
        "| [FAIL-3](publish.md) A lost lock frees its group | FAIL-3a | `tests/test_0.py::test_repeated` |",
        "| [FAIL-4](publish.md) Nothing \\| more | FAIL-3a |  |",
        "",
        "4 clauses, 1 cases, 1 checks, 1 tests beside them.",
    ]


@pytest.mark.parametrize(
    "reference",
    [
        "`tests/faults/test_errata.py::test_e17`",
        "`tests/faults/test_errata.py::test_e17[E1]`",
        "`tests/faults/test_gone.py::test_e1`",
        "`tests/faults/test_reports_leases.py::test_leases` (`stale_ack`, `gone`)",
    ],
)
def test_a_test_that_is_gone_is_found(reference: str) -> None:
    """A test, a file or a check that does not exist is named."""
    assert len(absent(f"| B01 | report | seen | {reference} |")) == 1
