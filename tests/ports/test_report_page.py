"""The page of a run in a real browser: it shows the failures, and fits a phone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.outcome import FAILED, KNOWN, NOT_ASKED, PASSED
from tests.support.report import WRITERS
from tests.support.report.data import data
from tests.unit.test_report import run_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
# Chromium's windows are at least 500 px wide; a frame is as narrow as it is told to be.
FRAME = """<!doctype html><iframe id=frame width=390 height=800 src="report.html"></iframe><script>
frame.onload = () => {
  const page = frame.contentDocument.documentElement
  const shown = [...frame.contentDocument.querySelectorAll('article')].filter(each => each.offsetHeight > 100)
  document.title = `width ${page.scrollWidth} of ${page.clientWidth}, articles ${shown.length}`
}</script>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None and not os.environ.get("REDISQ_REQUIRE_PORTS"), reason="no chromium on PATH"
)


def browse(page: Path, folder: Path, *options: str) -> str:
    """Opens a page, and returns its elements once it is done."""
    line = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", *options]
    done = subprocess.run([*line, page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """The page of a run with failures."""
    run = run_of(FAILED, KNOWN, *[PASSED] * 10, NOT_ASKED)
    (tmp_path / "report.html").write_text(WRITERS["--report-html"](data(run, 1)), encoding="utf-8")
    (tmp_path / "frame.html").write_text(FRAME, encoding="utf-8")
    return tmp_path


def test_fits_a_phone(report: Path) -> None:
    """Nothing is wider than a screen of 390 pixels, and both failures are there."""
    elements = browse(report / "frame.html", report, "--allow-file-access-from-files", "--dump-dom")
    title = re.search(r"<title>width (\d+) of (\d+), articles (\d+)</title>", elements)
    assert title is not None, elements[:500]
    wide, screen, articles = map(int, title.groups())
    assert wide <= screen <= 390
    assert articles == 2


def test_a_wide_page_would_be_seen(report: Path) -> None:
    """The check above sees a page that does not fit."""
    page = report / "report.html"
    page.write_text(page.read_text(encoding="utf-8").replace("<main>", "<main style='width: 900px'>"), encoding="utf-8")
    elements = browse(report / "frame.html", report, "--allow-file-access-from-files", "--dump-dom")
    assert re.search(r"<title>width 9\d\d of", elements)


@pytest.mark.parametrize("dark", ["", "--force-dark-mode"])
def test_is_drawn(report: Path, dark: str) -> None:
    """A picture of it comes out, in the light and in the dark."""
    picture = report / "page.png"
    browse(report / "report.html", report, "--window-size=500,900", f"--screenshot={picture}", *filter(None, [dark]))
    assert picture.stat().st_size > 20_000
