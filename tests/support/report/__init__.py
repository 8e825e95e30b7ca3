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


def write_reports(run: Session, failed: int, files: Mapping[str, Path]) -> list[str]:
    """Writes these reports; why, in words, for each that could not be written."""
    report = data(run, failed) if files else {}
    unwritten = []
    for option, path in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(WRITERS[option](report), encoding="utf-8")
        except OSError as error:
            unwritten.append(f"{option} {path}: {error.strerror}")
    return unwritten
