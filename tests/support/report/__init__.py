"""What a run leaves for machines and people: JSON, one HTML page, a badge."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from model.operation import Json
from tests.support.report.badge import badge
from tests.support.report.data import data
from tests.support.report.page import page
from tests.support.session import Session

Writer = Callable[[Json], str]
WRITERS: Mapping[str, Writer] = {
    "--report-json": lambda report: json.dumps(report, indent=1, ensure_ascii=False) + "\n",
    "--report-html": page,
    "--report-badge": lambda report: json.dumps(badge(report)) + "\n",
}


def write_reports(run: Session, failed: int, files: Mapping[str, Path | None], ended: str = "") -> None:
    """Writes the reports that were asked for; ``ended`` is why the run ended early, if it did."""
    wanted = {option: path for option, path in files.items() if path is not None}
    report = data(run, failed, ended) if wanted else {}
    for option, path in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WRITERS[option](report), encoding="utf-8")
