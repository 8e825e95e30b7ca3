"""The reports of a run: JSON of its schema, a page that escapes what it shows, a badge that does not flatter."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from model.operation import Json, Operation
from tests.support.cases import CASES
from tests.support.fake import FakeHost
from tests.support.judge import differs, record, settle
from tests.support.known import Known
from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED, Failure, Outcome
from tests.support.port.check import validator
from tests.support.report import WRITERS, write_reports
from tests.support.report.badge import badge
from tests.support.report.data import data
from tests.support.report.page import TEMPLATE
from tests.support.session import Choice, Session
from tests.support.summary import verdict
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
    """One with a member too many or too few, a status of its own, or a failure of another kind."""
    report = data(run_of(FAILED), 1)
    (outcome,) = report["outcomes"]
    wrong: list[Json] = [{"conforms": "yes"}, {"counts": {}}, {"outcomes": [{"case": "x"}]}, {"more": 1}, {"suite": ""}]
    wrong += [{"outcomes": [{**outcome, "status": "skipped"}]}, {"others": [{**outcome, "status": PASSED}]}]
    for name, value in (("kind", "sad"), ("before", {"queues": []}), ("steps", "none")):
        wrong.append({"outcomes": [{**outcome, "failure": {**outcome["failure"], name: value}}]})
    assert validator("report").is_valid(report)
    for change in wrong:
        assert not validator("report").is_valid({**report, **change}), change
    for name in report:
        assert not validator("report").is_valid({key: report[key] for key in report if key != name}), name


def test_a_score_that_json_cannot_hold() -> None:
    """What a wrong port leaves may be infinite; the report stays JSON, and says so."""
    run = run_of(FAILED)
    found = run.outcomes[0].failure
    assert found is not None
    assert found.have is not None
    found.have["ready"][0] = [{"group": {"utf8": "g"}, "score_ms": float("inf")}]
    text = WRITERS["--report-json"](data(run, 1))
    validator("report").validate(json.loads(text, parse_constant=pytest.fail))
    assert '"inf"' in text
    assert "ready:0 &quot;g&quot; inf" in WRITERS["--report-html"](data(run, 1))


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


def test_what_is_no_case_is_told_beside_the_cases() -> None:
    """A divergence of random operations fails its test, and counts as no case."""
    run = run_of(PASSED)
    with pytest.raises(pytest.fail.Exception, match="replay just this trace"):
        differs(run, "random operations", diverged())
    report = data(run, 1)
    validator("report").validate(report)
    (other,) = report["others"]
    assert (other["case"], other["failure"]["kind"]) == ("random operations", "reply")
    assert "--replay" in other["failure"]["command"]
    assert report["counts"][FAILED] == 0
    assert badge(report)["message"] == "full: does not conform"
    assert "random operations on model" in WRITERS["--report-html"](report)


def test_a_known_failure_is_an_expected_one() -> None:
    """So JUnit shows it as skipped, with its reason; beside a failure that is not known it is nothing."""
    with pytest.raises(pytest.xfail.Exception, match="why"):
        settle(run_of(KNOWN, PASSED).outcomes)
    with pytest.raises(pytest.fail.Exception):
        settle(run_of(KNOWN, FAILED).outcomes)


def test_the_page_escapes_what_it_shows() -> None:
    """A group that is a script element stays text."""
    text = WRITERS["--report-html"](data(run_of(FAILED, KNOWN, NOT_ASKED), 1))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    for word in ("Keys before", "Known: why", "DOES NOT CONFORM", 'lang="en"', "viewport", "prefers-color-scheme"):
        assert word in text
    assert "http" not in text
    assert "url(" not in text


class Elements(HTMLParser):
    """Which elements stand open, and what was wrong with that."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.levels: list[int] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.seen[tag] += 1
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "th":
            assert given.get("scope") in ("row", "col", "rowgroup")
        if tag == "a":
            self.links.add(str(given["href"]).removeprefix("#"))
        if found := given.get("id"):
            assert found not in self.ids
            self.ids.add(found)
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_well_formed() -> None:
    """Elements are closed in order, headings leave no level out, and each mark of a failure leads to it."""
    found = Elements(WRITERS["--report-html"](data(run_of(FAILED, KNOWN, NOT_ASKED, PASSED), 1)))
    assert found.open == []
    assert found.levels[0] == 1
    assert all(below <= above + 1 for above, below in zip(found.levels, found.levels[1:], strict=False))
    assert found.links == {"failure-0"} <= found.ids  # both are of one clause
    assert found.seen["article"] == 2


def test_what_is_known_comes_last() -> None:
    """The mark of a clause leads to the failure that counts, wherever it ran."""
    text = WRITERS["--report-html"](data(run_of(KNOWN, FAILED), 1))
    assert text.index(f"✗ {CASES[1].id} on") < text.index(f"! {CASES[0].id} on")


def test_a_step_is_taken_apart_where_its_operation_ends() -> None:
    """An arrow inside a payload is no reply."""
    run = run_of(FAILED)
    failure = run.outcomes[0].failure
    assert failure is not None
    step = r'1000   publish group="g" payload="a \" -> 7"   -> 1'
    run.outcomes = [replace(run.outcomes[0], failure=replace(failure, steps=(step,)))]
    text = WRITERS["--report-html"](data(run, 1))
    assert "<span class='at'>1000</span>" in text
    assert "-&gt; 7&quot;</span> <span class='due'>→ 1</span>" in text


def luminance(color: str) -> float:
    """The relative luminance of WCAG."""
    digits = color.removeprefix("#")
    digits = "".join(digit * 2 for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_page_can_be_read() -> None:
    """Every colour of text stands out from every ground by 4.5, in the light and in the dark."""
    assert contrast("#fff", "#000") == pytest.approx(21)
    assert contrast("#777", "#fff") < 4.5  # the well-known grey that fails
    schemes = re.findall(r":root \{([^}]*--back[^}]*)\}", TEMPLATE.template)
    assert len(schemes) == 2
    for scheme in schemes:
        colors = dict(re.findall(r"--(\w+): (#\w+)", scheme))
        for ground in ("back", "box", "here"):
            for text in ("text", "soft", "good", "bad", "known"):
                assert contrast(colors[text], colors[ground]) >= 4.5, f"{text} on {ground}"


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
    run = run_of(PASSED)
    run.ended = "the adapter said nothing"
    files = {"--report-json": tmp_path / "a/b.json", "--report-badge": tmp_path / "badge.json"}
    assert write_reports(run, 0, files) == []
    assert {path.name for path in tmp_path.rglob("*.json")} == {"b.json", "badge.json"}
    report = json.loads((tmp_path / "a/b.json").read_text(encoding="utf-8"))
    assert (report["conforms"], report["verdict"]) == (False, "ENDED: the adapter said nothing")
    assert json.loads((tmp_path / "badge.json").read_text(encoding="utf-8"))["message"] == "ended early"


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The others are written all the same, and the run is no success."""
    run = run_of(PASSED)
    files = {"--report-json": tmp_path, "--report-badge": tmp_path / "badge.json"}
    run.unwritten = write_reports(run, 0, files)
    assert run.unwritten == [f"--report-json {tmp_path}: Is a directory"]
    assert (tmp_path / "badge.json").exists()
    text, good = verdict(run, 0)
    assert not good
    assert "not written" in text


def test_known_failures_are_told_apart() -> None:
    """A failure that is listed is no failure of the run, and its reason is shown."""
    run = run_of()
    run.known = Known({CASES[0].id: ("check", "until next week")}, {CASES[0].id})
    record(run, CASES[0], "port/x", Failure("check", report="r"))
    (outcome,) = data(run, 0)["outcomes"]
    assert (outcome["status"], outcome["why"]) == (KNOWN, "until next week")
