"""The oracle: ``python -m model``."""

from __future__ import annotations

import io
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import model.__main__ as oracle
from model.operation import CAPABILITIES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "spec" / "oracle.md").read_text(encoding="utf-8")


def test_the_session_of_the_page() -> None:
    """Every request written in spec/oracle.md gets the answer written there, from a process of its own."""
    lines = [line for block in re.findall(r"^```session\n(.*?)^```", PAGE, re.M | re.S) for line in block.splitlines()]
    asked = [line[2:] for line in lines if line.startswith("> ")]
    answers = [json.loads(line[2:]) for line in lines if line.startswith("< ")]
    assert len(asked) == len(answers) > 5
    run = subprocess.run(
        [sys.executable, "-m", "model"],
        input="\n".join([*asked, ""]),
        text=True,
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    assert [json.loads(line) for line in run.stdout.splitlines()] == answers


@given(
    st.one_of(st.binary(), st.text().map(str.encode), st.recursive(st.none(), st.lists).map(json.dumps).map(str.encode))
)
def test_garbage_is_a_fault(line: bytes) -> None:
    """Whatever a line holds, the answer is one object that says what is wrong, and the oracle lives on."""
    answer = oracle.Oracle().answer(line)
    assert set(answer) - {"id"} == {"fault"}
    assert answer["fault"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"\xff", "not UTF-8: byte 0 is 0xff"),
        (b'{"op"', "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"op": NaN}', "NaN is not a number of JSON"),
        (b'{"op": "claim", "time_ms": ' + b"9" * 5_000 + b"}", "digits"),
        (b'{"op": "state", "prefix": 7}', "prefix: bytes as"),
    ],
)
def test_says_what_is_wrong(line: bytes, said: str) -> None:
    """Each kind of bad line has its own words."""
    assert said in oracle.Oracle().answer(line)["fault"]


def test_answers_in_process() -> None:
    """The whole state, an error and a delivery, from an oracle of this process."""
    asked = oracle.Oracle()
    asked.answer(b'{"op": "publish", "time_ms": 1, "group": {"utf8": "g"}}')
    asked.answer(b'{"op": "claim", "time_ms": 1, "token": {"utf8": "A"}}')
    assert asked.answer(b'{"op": "state"}')["state"]["locks"][0]["deadline_ms"] == 30_001
    assert asked.answer(b'{"op": "reset"}') == {"ok": None}


def test_refuses_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line over the limit is a fault."""
    monkeypatch.setattr(oracle, "MAX_LINE", 10)
    assert "at most 10 bytes" in oracle.Oracle().answer(b'{"op": "reset"}')["fault"]


def test_answers_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Blank lines are passed over, ids are echoed, the end of the input is the end."""
    lines = b'\n{"op": "reset", "id": 7}\n  \n{"op": "wait", "time_ms": 5, "id": null}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    sys.modules.pop("model.__main__")
    runpy.run_module("model", run_name="__main__")
    assert capsys.readouterr().out == '{"id": 7, "ok": null}\n{"id": null, "ok": null}\n'


def test_speaks_the_port_protocol() -> None:
    """It says hello with every capability and that it keeps its own keys; open and close do nothing."""
    asked = oracle.Oracle()
    hello = asked.answer(b'{"id": 1, "op": "hello", "protocols": [1]}')
    assert (hello["id"], hello["ok"]["protocol"], hello["ok"]["state"]) == (1, 1, True)
    assert hello["ok"]["capabilities"] == list(CAPABILITIES)
    for op in ("open", "close"):
        assert asked.answer(json.dumps({"id": 2, "op": op, "url": "redis://x"}).encode()) == {"id": 2, "ok": None}
