"""The known failures of a port: read, matched, and never a way to hide something."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.known import Known, KnownError
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, Failure, Outcome

FILE = '[CLAIM-1a]\nkind = "reply"\nreason = "until we have ties"\n'


def known(tmp_path: Path, text: str = FILE) -> Known:
    """The entries of such a file."""
    (tmp_path / "known.toml").write_text(text, encoding="utf-8")
    return Known.read(tmp_path / "known.toml")


def outcome(case: str = "CLAIM-1a", status: str = FAILED, kind: str | None = "reply") -> Outcome:
    """What came of a case."""
    return Outcome(case, ("CLAIM-1",), "", "port/x", status, failure=Failure(kind, report="r") if kind else None)


def test_a_failure_as_listed_is_known(tmp_path: Path) -> None:
    """It has run, failed as the file says, and does not fail the run; its reason is shown."""
    entries = known(tmp_path)
    judged = entries.judge(outcome())
    assert (judged.status, judged.why, entries.unmatched) == (KNOWN, "until we have ties", set())


def test_another_kind_of_failure_fails(tmp_path: Path) -> None:
    """Something else is broken than what is listed."""
    judged = known(tmp_path).judge(outcome(kind="crash"))
    assert judged.status == FAILED
    assert judged.failure is not None
    assert "of kind reply (until we have ties), and failed by crash" in judged.failure.report


def test_an_unexpected_pass_fails(tmp_path: Path) -> None:
    """The entry is to be taken out."""
    judged = known(tmp_path).judge(outcome(status=PASSED, kind=None))
    assert judged.status == FAILED
    assert judged.failure is not None
    assert "take the entry out" in judged.failure.report


def test_what_matches_nothing_is_named(tmp_path: Path) -> None:
    """An entry whose case did not run, or was not asked, stays unmatched."""
    entries = known(tmp_path)
    assert entries.judge(outcome(case="CLAIM-2a")).status == FAILED
    assert entries.judge(outcome(status=NOT_ASKED, kind=None)).status == NOT_ASKED
    assert entries.unmatched == {"CLAIM-1a"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[CLAIM-1a]\nkind = 'reply'\n", "has a kind and a reason"),
        ("[CLAIM-1a]\nkind = 'reply'\nreason = ' '\n", "has no reason"),
        ("[CLAIM-1a]\nkind = 'slow'\nreason = 'x'\n", "kind is one of reply, keys"),
        ("CLAIM-1a = 1\n", "has a kind and a reason"),
        ("[CLAIM-1a\n", "known.toml: "),
    ],
)
def test_says_what_is_wrong_with_a_file(tmp_path: Path, text: str, says: str) -> None:
    """A file that cannot be used is refused, with the entry."""
    with pytest.raises(KnownError, match=r"known\.toml") as refused:
        known(tmp_path, text)
    assert says in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(KnownError, match=r"nowhere\.toml"):
        Known.read(tmp_path / "nowhere.toml")
