"""The page of a run in a real browser: it shows the failures, and fits a phone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.ports.test_reports import ACKS_ANYTHING, adapter, read, suite
from tests.support.outcome import KNOWN

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Chromium's windows are at least 500 px wide; a frame is as narrow as it is told to be.
FRAME = """<!doctype html><iframe id=frame width=390 height=800 src="report.html"></iframe><script>
frame.onload = () => {
  const page = frame.contentDocument
  const shown = selector => [...page.querySelectorAll(selector)].filter(each => each.offsetHeight > 0)
  const tops = shown('.spaces')[0].children
  document.title = JSON.stringify({
    width: page.documentElement.scrollWidth,
    screen: page.documentElement.clientWidth,
    failures: shown('article h3').map(each => each.textContent),
    here: shown('li.here').length,
    stacked: tops[0].offsetTop < tops[1].offsetTop,
    marks: shown('td.mark').length,
    ground: getComputedStyle(page.body).backgroundColor,
  })
}</script>"""
DARK = "--blink-settings=preferredColorScheme=0"

pytestmark = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("REDISQ_REQUIRE_PORTS"), reason="no chromium on PATH"
)


def browse(page: Path, folder: Path, *options: str) -> str:
    """Opens a page, and returns its elements once it is done."""
    line = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", *options]
    done = subprocess.run([*line, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def look(folder: Path, *options: str, width: int = 390) -> Any:
    """What a screen of that width shows of the page."""
    (folder / "frame.html").write_text(FRAME.replace("390", str(width)), encoding="utf-8")
    elements = browse(folder / "frame.html", folder, "--allow-file-access-from-files", "--dump-dom", *options)
    title = re.search(r"<title>(.*?)</title>", elements)
    assert title is not None, elements[:500]
    return json.loads(unescape(title[1]))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of a wrong port, one of whose failures is known."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "known.toml").write_text('[ACK-5a]\nkind = "reply"\nreason = "until next week"\n', encoding="utf-8")
    port = adapter(folder, ACKS_ANYTHING)
    done = suite(folder, "--port", port, "--clause", "ACK", "--clause", "SETTLE", "--known-failures", "known.toml")
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


@pytest.fixture
def report(failing: Path, tmp_path: Path) -> Path:
    """A folder with the page of that run."""
    shutil.copy(failing / "below/report.html", tmp_path)
    return tmp_path


def test_fits_a_phone(report: Path, failing: Path) -> None:
    """Nothing is wider than a screen of 390 pixels; every failure is there, with its step; key spaces are stacked."""
    shown = look(report)
    assert shown["width"] <= shown["screen"] <= 390
    outcomes = [outcome for outcome in read(failing)["outcomes"] if outcome["failure"]]
    assert len(outcomes) > 5
    assert sorted(shown["failures"]) == sorted(
        f"{'!' if outcome['status'] == KNOWN else '✗'} {outcome['case']} on port: reply" for outcome in outcomes
    )
    assert shown["here"] == len(outcomes)
    assert shown["marks"] > 80
    assert shown["stacked"]


def test_key_spaces_stand_side_by_side_where_there_is_room(report: Path) -> None:
    """Before, as they should be, as they are, in one row."""
    assert not look(report, "--window-size=1300,900", width=1200)["stacked"]


def test_a_wide_page_would_be_seen(report: Path) -> None:
    """The check above sees a page that does not fit."""
    page = report / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("<main>", "<main style='width: 900px'>"), encoding="utf-8")
    assert look(report)["width"] > 900


def test_is_dark_in_the_dark(report: Path) -> None:
    """It follows what its reader prefers."""
    assert look(report)["ground"] == "rgb(255, 255, 255)"
    assert look(report, DARK)["ground"] == "rgb(13, 17, 23)"


@pytest.mark.parametrize("options", [(), (DARK,)], ids=["light", "dark"])
def test_is_drawn(report: Path, options: tuple[str, ...]) -> None:
    """A picture of it comes out, in the light and in the dark."""
    picture = report / "page.png"
    browse(report / "report.html", report, "--window-size=500,900", f"--screenshot={picture}", *options)
    assert picture.stat().st_size > 20_000
