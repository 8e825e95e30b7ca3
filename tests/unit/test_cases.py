"""The reader of the spec's pages: clauses, cases, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.operation import Malformed
from tests.support.cases import CASES, CLAUSES, read_page, read_pages
from tests.support.port.asked import needs

PAGE = """\
# claim

### CLAIM-1 The oldest due group is claimed

Text. Capability: not here.

```trace CLAIM-1a: a group waits for ever
1000  publish group="g" payload="m"                      -> 1
# the original differs: it does not
1000  claim token="A"                                    -> group="g" payload="m"
```

### CLAIM-2 A full server is drained

Capability: `drain-at-maxmemory`.

```check CLAIM-2a: nothing drains
Fill the server.
# also CLAIM-1
```

```trace CLAIM-2b: it is renewed
# capability: extend
1000  extend group="g" token="A"                         -> 0
```
"""


def test_reads_clauses_cases_and_checks() -> None:
    """With their capability, level, further clauses and the step at which the original differs."""
    page = read_page(PAGE, "claim.md")
    assert [(c.id, c.title, c.capability) for c in page.clauses] == [
        ("CLAIM-1", "The oldest due group is claimed", None),
        ("CLAIM-2", "A full server is drained", "drain-at-maxmemory"),
    ]
    assert [(c.id, c.level, c.capability, c.original_differs_at) for c in page.cases] == [
        ("CLAIM-1a", "full", None, 1),
        ("CLAIM-2b", "core", "extend", None),
    ]
    assert [(c.id, c.clauses, c.capability, c.level) for c in page.checks] == [
        ("CLAIM-2a", ("CLAIM-2", "CLAIM-1"), "drain-at-maxmemory", "full")
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("CLAIM-1a:", "CLAIM-9a:", "the id of a case under CLAIM-1"),
        ("CLAIM-1a:", "CLAIM-1-1:", "the id of a case under CLAIM-1"),
        ("drain-at-maxmemory", "drain-at-midnight", "no such capability: drain-at-midnight"),
        ("capability: extend", "capability: extent", "no such capability: extent"),
        ("### CLAIM-1 The", "### The", "a case stands under no clause"),
        ("claim token", "claims token", "CLAIM-1a: claims: no such operation"),
        ("### CLAIM-2", "### CLAIM-1", "the id of a case under CLAIM-1"),
        ("also CLAIM-1", "also CLAIM-8", "CLAIM-2a names clauses that no page has: CLAIM-8"),
        ("CLAIM-2b:", "CLAIM-2a:", "CLAIM-2a is used twice"),
    ],
)
def test_says_what_is_wrong_with_a_page(tmp_path: Path, old: str, new: str, says: str) -> None:
    """A page that cannot be read is refused, with the place and the reason."""
    (tmp_path / "claim.md").write_text(PAGE.replace(old, new), encoding="utf-8")
    with pytest.raises(Malformed) as refused:
        read_pages([tmp_path / "claim.md"])
    assert says in str(refused.value)


def test_every_case_at_full_level_has_a_capability() -> None:
    """Where the original differs, a port is told which correction it lacks."""
    assert [case.id for case in CASES if case.level == "full" and not (case.capability or needs(case))] == []


def test_every_script_has_its_page() -> None:
    """An operation is found by its name: a page of the spec, with clauses of that name."""
    assert {name.split("-")[0] for name in CLAUSES} >= {"PUBLISH", "CLAIM", "ACK", "NACK", "EXTEND"}


def test_no_trace_sets_a_clock_that_crashes_a_server() -> None:
    """Redis 7.4.1 and 8.0.2 crash beyond 48 bits of their clock: such instants come from callers, in `now_ms`."""
    assert max(operation.time_ms for case in CASES for operation in case.operations) <= 2**48
    far = [value for case in CASES for operation in case.operations for value in operation.args.values()]
    assert max(value for value in far if isinstance(value, int)) >= 10**15 - 2
