"""The reports of a run: JSON of its schema, a page that escapes what it shows, a badge that does not flatter."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from model.operation import Operation
from tests.support.cases import CASES
from tests.support.fake import FakeHost
from tests.support.judge import record
from tests.support.known import Known
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, Failure, Outcome
from tests.support.port.check import validator
from tests.support.report import WRITERS, write_reports
from tests.support.report.badge import badge
from tests.support.report.data import data
from tests.support.session import Choice, Session
from tests.support.trial import Divergence, Tally, Trial
from tests.support.witness import Model

HOSTILE = b"<script>alert('x')</script>&"


def diverged() -> Divergence:
    """What a trial raises about a witness that loses every message of a hostile group."""

    class Loses(Model):
        def do(self, operation: Operation) -> object:  # type: ignore[override]
            super().do(operation)
            return super().do(Operation("drop-list", operation.time_ms, {"group": HOSTILE}))

    trial = Trial([Loses()], 1000, [b"redisq"])
    with pytest.raises(Divergence) as raised:
        trial.do(Operation("publish", 1000, {"group": HOSTILE, "payload": b"m"}))
    return raised.value


def run_of(*statuses: str) -> Session:
    """A run with an outcome of each status."""
    run = Session(Choice(suts=["fakeredis"]))
    run._hosts = [FakeHost()]
    run.tally = {"cases": Tally(Counter({("fakeredis", "claim"): 3}))}
    for case, status in zip(CASES, statuses, strict=False):
        failure = diverged().failure if status in (FAILED, KNOWN) else None
        run.outcomes.append(Outcome(case.id, case.clauses, case.sentence, "fakeredis", status, "why", failure))
    return run


@pytest.mark.parametrize("statuses", [(), (PASSED,), (FAILED, KNOWN, NOT_ASKED, PASSED)])
def test_json_is_of_its_schema(statuses: tuple[str, ...]) -> None:
    """An empty run, a good one and a bad one."""
    report = json.loads(json.dumps(data(run_of(*statuses), statuses.count(FAILED))))
    validator("report").validate(report)
    assert report["conforms"] == (FAILED not in statuses)
    assert {status: report["counts"][status] for status in set(statuses)} == Counter(statuses)


def test_the_schema_refuses_another_report() -> None:
    """One that leaves out whether it conforms, or has a status of its own."""
    for change in ({"conforms": "yes"}, {"counts": {}}, {"outcomes": [{"case": "x"}]}):
        assert not validator("report").is_valid({**data(run_of(PASSED), 0), **change})


def test_a_failure_is_told_with_all_that_is_known() -> None:
    """The steps, the reply that was due and the one that came, the keys, the key spaces and the rule."""
    run = run_of()
    record(run, CASES[0], "port/x", diverged())
    (outcome,) = data(run, 1)["outcomes"]
    failure = outcome["failure"]
    assert failure["kind"] == "reply"
    assert failure["expected"] == "1"
    assert [step.split("->")[1] for step in failure["steps"]] == [" 1"]
    assert failure["before"]["queues"] == []
    assert len(failure["want"]["queues"]) == 1
    assert failure["have"]["queues"] == []
    assert failure["rules"]
    assert CASES[0].clauses[0] in failure["report"]


def test_the_page_escapes_what_it_shows() -> None:
    """A group that is a script element stays text."""
    text = WRITERS["--report-html"](data(run_of(FAILED, KNOWN, NOT_ASKED), 1))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    for word in ("Keys before", "Known: why", "DOES NOT CONFORM", 'lang="en"', "viewport", "prefers-color-scheme"):
        assert word in text
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("statuses", "failed", "color", "message"),
    [
        ((), 0, "red", "nothing ran"),
        ((PASSED, PASSED), 0, "brightgreen", "full: 2 of 2 cases"),
        ((PASSED, KNOWN), 0, "yellow", "full: 1 of 2 cases"),
        ((PASSED, FAILED, NOT_ASKED), 1, "red", "full: 1 of 2 cases"),
    ],
)
def test_badge(statuses: tuple[str, ...], failed: int, color: str, message: str) -> None:
    """It counts what was asked, and is green only for a run that is good."""
    shown = badge(data(run_of(*statuses), failed))
    assert shown == {"schemaVersion": 1, "label": "redisq", "message": message, "color": color}


def test_what_was_asked_for_is_written(tmp_path: Path) -> None:
    """Each file that was named, its folder made, and no other; a run that ended early says so."""
    files = {"--report-json": tmp_path / "a/b.json", "--report-html": None, "--report-badge": tmp_path / "badge.json"}
    write_reports(run_of(PASSED), 0, files, "the adapter said nothing")
    assert {path.name for path in tmp_path.rglob("*.json")} == {"b.json", "badge.json"}
    report = json.loads((tmp_path / "a/b.json").read_text(encoding="utf-8"))
    assert (report["conforms"], report["verdict"]) == (False, "ENDED: the adapter said nothing")


def test_known_failures_are_told_apart() -> None:
    """A failure that is listed is no failure of the run, and its reason is shown."""
    run = run_of()
    run.known = Known({CASES[0].id: ("check", "until next week")}, {CASES[0].id})
    record(run, CASES[0], "port/x", Failure("check", report="r"))
    (outcome,) = data(run, 0)["outcomes"]
    assert (outcome["status"], outcome["why"]) == (KNOWN, "until next week")
