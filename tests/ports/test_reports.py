"""The reports of whole runs, of a right port and a wrong one: also of runs that are stopped before their end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.outcome import FAILED, KNOWN, NOT_ASKED
from tests.support.port.check import validator

ROOT = Path(__file__).parents[2]
LAUNCHER = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from redisq.conformance import main; sys.exit(main())"
RIGHT = f"{sys.executable} -m model"
# The model, with one answer changed.
ADAPTER = """
import json, pathlib, sys, time
from model.__main__ import Oracle

oracle = Oracle()
for number, line in enumerate(sys.stdin.buffer):
    request, answer = json.loads(line), oracle.answer(line)
    CHANGE
    print(json.dumps(answer), flush=True)
"""
ACKS_ANYTHING = """if request["op"] == "ack" and answer.get("ok") == 0:
        answer["ok"] = 1
        print("acked <script>alert(1)</script>", file=sys.stderr)"""
STOPS = """if number == 300:
        pathlib.Path("stopped").touch()
        time.sleep(60)"""


def adapter(folder: Path, change: str) -> str:
    """The command of such an adapter."""
    (folder / "adapter.py").write_text(ADAPTER.replace("CHANGE", change), encoding="utf-8")
    return f"{sys.executable} adapter.py"


def words(*options: str) -> list[str]:
    """The command with all reports, in the caller's folder and one below."""
    reports = ["--report-json", "report.json", "--report-html", "below/report.html", "--report-badge", "badge.json"]
    return [sys.executable, "-c", LAUNCHER, *reports, "--junitxml", "junit.xml", *options]


def suite(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A run with these options in that folder."""
    return subprocess.run(words(*options), cwd=folder, capture_output=True, text=True, check=False)


def read(folder: Path) -> Any:
    """The report, which is of its schema."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    validator("report").validate(report)
    return report


def badge(folder: Path) -> tuple[str, str]:
    """What the badge says, and in which colour."""
    shown = json.loads((folder / "badge.json").read_text(encoding="utf-8"))
    return shown["message"], shown["color"]


def junit(folder: Path, *found: str) -> list[ElementTree.Element]:
    """The test cases of the JUnit file that have one of these elements."""
    cases = ElementTree.parse(folder / "junit.xml").iter("testcase")
    return [case for case in cases if any(case.find(name) is not None for name in found)]


def names(outcomes: Sequence[Any]) -> set[str]:
    """The cases of outcomes."""
    return {outcome["case"] for outcome in outcomes}


def test_of_a_right_port(tmp_path: Path) -> None:
    """Everything passes, and each report says so; JUnit names the clauses of each case."""
    done = suite(tmp_path, "--port", RIGHT, "--clause", "ACK")
    assert done.returncode == 0, done.stdout + done.stderr
    report = read(tmp_path)
    assert report["conforms"]
    assert (report["port"]["name"], report["port"]["language"], report["level"]) == ("model", "Python", "full")
    assert report["counts"]["passed"] == len(report["outcomes"]) > 5
    assert report["compared"]["port"] > 20
    assert badge(tmp_path) == (f"full: {len(report['outcomes'])} of {len(report['outcomes'])} cases", "brightgreen")
    assert "CONFORMS" in (tmp_path / "below/report.html").read_text(encoding="utf-8")
    clauses = {found.get("value") for case in junit(tmp_path, "properties") for found in case.iter("property")}
    assert {"ACK-1", "ACK-5"} <= clauses


def test_of_a_wrong_port(tmp_path: Path) -> None:
    """Every failure is told in each report, random operations too; what is known or not asked has its reason."""
    (tmp_path / "known.toml").write_text('[ACK-5a]\nkind = "reply"\nreason = "until next week"\n', encoding="utf-8")
    port = adapter(tmp_path, ACKS_ANYTHING)
    done = suite(tmp_path, "--port", port, "--operations", "100", "--known-failures", "known.toml")
    assert done.returncode == 1, done.stdout + done.stderr
    report = read(tmp_path)
    failed = [outcome for outcome in report["outcomes"] if outcome["status"] == FAILED]
    assert not report["conforms"]
    assert names(report["others"]) == {"random operations"}
    assert len(failed) + len(report["others"]) == len(junit(tmp_path, "failure", "error")) > 10
    assert badge(tmp_path)[1] == "red"

    page = (tmp_path / "below/report.html").read_text(encoding="utf-8")
    assert page.count("<article") == len(failed) + len(report["others"]) + report["counts"][KNOWN]
    assert all(f"{case} on port" in page for case in names(failed))
    assert "<script" not in page

    skipped = {case.get("name"): case.find("skipped") for case in junit(tmp_path, "skipped")}
    known = skipped["test_case[ACK-5a]"]
    assert known is not None
    assert (known.get("type"), known.get("message")) == ("pytest.xfail", "until next week")
    not_asked = [outcome for outcome in report["outcomes"] if outcome["status"] == NOT_ASKED]
    assert not_asked
    for outcome in not_asked:
        reason = skipped[f"test_check[{outcome['case']}]"]
        assert reason is not None
        assert outcome["why"] == reason.get("message")
        assert escape(outcome["why"]) in page


def test_each_failure_runs_alone(tmp_path: Path) -> None:
    """The command that stands with a failure fails in the same way."""
    port = adapter(tmp_path, ACKS_ANYTHING)
    suite(tmp_path, "--port", port, "--case", "SETTLE-1e")
    (first,) = read(tmp_path)["outcomes"]
    command = first["failure"]["command"].removeprefix("redisq-conformance ")
    (tmp_path / "report.json").unlink()
    alone = f'exec "$0" -c "$1" --report-json report.json {command}'
    done = subprocess.run(["sh", "-c", alone, sys.executable, LAUNCHER], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    (second,) = read(tmp_path)["outcomes"]
    assert second["failure"] == first["failure"]


def test_of_a_port_that_says_no_hello(tmp_path: Path) -> None:
    """All reports are written, with the adapter's last words; JUnit has an error, and not nothing."""
    done = suite(tmp_path, "--port", f"{sys.executable} -c 'raise SystemExit(\"no such server\")'")
    assert done.returncode == 1, done.stdout + done.stderr
    report = read(tmp_path)
    assert report["ended"].startswith("the port did not come so far: crash")
    assert not report["conforms"]
    (hello,) = report["others"]
    assert (hello["case"], hello["failure"]["kind"], hello["failure"]["stderr"]) == ("hello", "crash", "no such server")
    assert badge(tmp_path) == ("ended early", "red")
    assert len(junit(tmp_path, "error")) == 1
    assert "no such server" in (tmp_path / "below/report.html").read_text(encoding="utf-8")
    assert "no such server" in done.stdout


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "interrupted"),
        (signal.SIGKILL, "the run did not come to its end"),
    ],
)
def test_of_a_run_that_is_stopped(tmp_path: Path, sent: signal.Signals, says: str) -> None:
    """No report praises it, not even one of an earlier run. Unless it is killed, what it found so far is there."""
    suite(tmp_path, "--port", RIGHT, "--case", "ACK-1a")
    assert read(tmp_path)["conforms"]
    process = subprocess.Popen(
        words("--port", adapter(tmp_path, STOPS), "--port-timeout", "60"),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a caller may ignore it
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "stopped").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(sent)
        code = process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
    report = read(tmp_path)
    assert (code, report["conforms"], report["ended"]) == (-sent if sent == signal.SIGKILL else 1, False, says)
    assert bool(report["counts"]["passed"]) == (sent != signal.SIGKILL)
    assert badge(tmp_path) == ("ended early", "red")
    assert f"ENDED: {says}" in (tmp_path / "below/report.html").read_text(encoding="utf-8")


def test_nothing_asked_is_no_success(tmp_path: Path) -> None:
    """A run whose cases were all left out does not conform, and its exit code says so."""
    done = suite(tmp_path, "--port", RIGHT, "--case", "E5-1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "NOTHING RAN" in done.stdout
    assert not read(tmp_path)["conforms"]
    assert badge(tmp_path) == ("nothing ran", "red")


def test_what_is_no_case_is_told(tmp_path: Path) -> None:
    """A replayed trace that differs, and a failure of the suite's own."""
    (tmp_path / "trace").write_text('1000 ack group="g" token="A"\n', encoding="utf-8")
    assert suite(tmp_path, "--port", adapter(tmp_path, ACKS_ANYTHING), "--replay", "trace").returncode == 1
    (replay,) = read(tmp_path)["others"]
    assert (replay["case"], replay["failure"]["got"]) == ("replay", "1")
    assert badge(tmp_path)[1] == "red"
    assert suite(tmp_path, "--check-port", RIGHT, "--redis-url", "redis://127.0.0.1:1").returncode == 1
    (check,) = read(tmp_path)["others"]
    assert check["case"] == "test_check_port"
    assert "no server found" in check["failure"]["report"]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """It is an error of the command line, named before anything runs."""
    done = suite(tmp_path, "--port", RIGHT, "--report-json", ".")
    assert done.returncode == 2, done.stdout + done.stderr
    assert f"--report-json {tmp_path}: Is a directory" in done.stderr
    assert "Traceback" not in done.stderr
