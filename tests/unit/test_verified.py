"""The table of what was verified: it is of the code that there is, and says what the runs found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.result import Result
from tests.support import verified

RECORD: dict[str, Any] = json.loads(verified.FILE.read_text(encoding="utf-8"))
OF_A_SCRIPT = ("refine", "suite", "soak", "power")


def test_nothing_is_stale() -> None:
    """Every count is of the scripts, the model and the suite as they are: else run `tox run -e verified -- PART`."""
    assert verified.stale(RECORD, Result.read()) == []


def test_the_readme_has_the_table() -> None:
    """The table of README.md is the one that the record gives."""
    readme = verified.README.read_text(encoding="utf-8")
    assert verified.in_readme(readme, verified.table(RECORD, Result.read())) == readme
    assert readme.count(verified.BEGIN) == readme.count(verified.END) == 1


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("model/claim.py", ["verified -- explore", "verified -- large", "verified -- refine", "verified -- suite"]),
        ("redisq/lua/ack.lua", [f"verified -- {part}" for part in OF_A_SCRIPT] + ["mutants -- --record"]),
        ("redisq/aio.py", ["verified -- suite", "verified -- soak", "verified -- power"]),
        ("tests/faults/load/injury.py", ["verified -- soak", "verified -- power"]),
    ],
)
def test_a_change_makes_the_counts_stale(tmp_path: Path, file: str, parts: list[str]) -> None:
    """A count is of no use once what it describes is another."""
    for folder in ("model", "redisq", "tests/exploration", "tests/differential", "tests/faults"):
        shutil.copytree(verified.ROOT / folder, tmp_path / folder)
    assert verified.stale(RECORD, Result.read(), tmp_path) == []
    with (tmp_path / file).open("a") as changed:
        changed.write("\n")
    assert verified.stale(RECORD, Result.read(), tmp_path) == [f"tox run -e {part}" for part in parts]
    assert len(verified.stale({}, Result.read(), tmp_path)) >= len(verified.DESCRIBES)


def test_the_table_says_what_was_found() -> None:
    """With the numbers of the record, and those of the mutants."""
    text = verified.table(RECORD, Result({}, {"a": "case: x", "b": "", "c": "transition"}))
    assert "| mutants of the Lua killed | 2 of 3; the other 1 change nothing |" in text
    assert f"{RECORD['refine']['found']:,}, on fakeredis " in text
    assert f"{RECORD['large']['states']:,} and {RECORD['large']['transitions']:,}" in text


def test_an_unknown_part(capsys: pytest.CaptureFixture[str]) -> None:
    """A part that there is not is told, with those that there are."""
    with pytest.raises(SystemExit):
        verified.main(["everything"])
    said = capsys.readouterr().err
    assert "no such part: everything; there are explore, large, refine, suite, soak, power, and all" in said
