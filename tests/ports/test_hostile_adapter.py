"""Thousands of malformed lines: each is refused with a sentence that says what was wrong, and the runner lives."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from model.operation import Json
from tests.ports.malformed import ANSWERS, REQUESTS, Line, malformed
from tests.support.cases import CASES
from tests.support.judge import try_case
from tests.support.options import SESSION
from tests.support.outcome import FAILED, PASSED
from tests.support.port import witness
from tests.support.port.check import mistakes_in
from tests.support.port.messages import Hello, read_state, reply
from tests.support.port.process import PortError, Process, parse
from tests.support.report import WRITERS, write_reports
from tests.support.session import Choice, Session

ROOT = Path(__file__).parents[2]
LINES = 5_000
LONGEST = 1_200  # characters of a message that a person reads

# Answers request after request with the lines of a file.
REPLAYS = """
import json, sys

with open(sys.argv[1], "rb") as lines:
    for request in sys.stdin:
        answer = lines.readline().replace(b'"id": 1', b'"id": %d' % json.loads(request)["id"])
        sys.stdout.buffer.write(answer)
        sys.stdout.flush()
"""
# A right port, but for its first acks, which it answers with the lines of a file, each once, whatever becomes of it.
BABBLES = """
import json, sys
from pathlib import Path
from tests.ports.zoo.base import Port

lines, said = Path(sys.argv[1]).read_bytes().splitlines(), Path(sys.argv[2])
port = Port()
for asked in sys.stdin:
    request = json.loads(asked)
    number = len(said.read_text())
    if request["op"] == "ack" and number < len(lines):
        said.write_text("." * (number + 1))
        answer = lines[number].replace(b'"id": 1', b'"id": %d' % request["id"])
    else:
        answer = json.dumps({"id": request["id"], **port.answer(request)}).encode()
    sys.stdout.buffer.write(answer + b"\\n")
    sys.stdout.flush()
"""


def read(answer: Json, op: str) -> object:
    """Reads an answer as the runner does. Raises PortError."""
    if op == "hello":
        return Hello.read(answer)
    return read_state(answer) if op == "state" else reply(answer, op)


def expect_clear(line: Line, text: str) -> None:
    """What is said of a line names what is wrong with it, and can be shown and read."""
    assert any(says in text for says in line.says), (line.data[:200], text)
    assert len(text) < LONGEST
    assert text.encode()


def test_every_malformed_answer_is_named() -> None:
    """Each is refused, by the name of what is wrong with it."""
    for number in range(LINES):
        line = malformed(number, ANSWERS)
        with pytest.raises(PortError) as refused:
            read(parse(line.data), line.op)
        expect_clear(line, str(refused.value))


def test_a_good_answer_is_not_refused() -> None:
    """The messages that the lines are made of are read: it is the change that is refused; and vague words do not do."""
    for op, message, *_ in ANSWERS:
        assert read(parse(json.dumps({"id": 1, **message}).encode()), op)
    with pytest.raises(AssertionError):
        expect_clear(malformed(0, ANSWERS), "protocol error")


def test_every_malformed_answer_of_a_process_is_named(tmp_path: Path) -> None:
    """A process that answers so can be asked on after each line."""
    lines = [malformed(number, ANSWERS) for number in range(LINES)]
    (tmp_path / "lines").write_bytes(b"".join(line.data + b"\n" for line in lines) + b'{"id": 1, "ok": 7}\n')
    (tmp_path / "adapter.py").write_text(REPLAYS)
    process = Process(f"{sys.executable} {tmp_path / 'adapter.py'} {tmp_path / 'lines'}", 20)
    try:
        for line in lines:
            with pytest.raises(PortError) as refused:
                read(process.ask({"op": line.op}), line.op)
            expect_clear(line, str(refused.value))
        assert process.ask({"op": "ack"})["ok"] == 7
    finally:
        process.end()


def test_a_run_survives_them(pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one failed case that says what came; the cases after them pass, and every report can be written."""
    found = [host for host in pytestconfig.stash[SESSION].hosts if host.name != "fakeredis" and host.clock.exact]
    if not found:
        pytest.skip("no server with a virtual clock")
    monkeypatch.setattr(witness, "RESTARTS", 1_000)
    lines = [malformed(number, ANSWERS).data for number in range(24)] + [b'{"id": 1, "fault": "\\ud83d"}']
    (tmp_path / "lines").write_bytes(b"\n".join(lines))
    (tmp_path / "said").write_text("")
    (tmp_path / "adapter.py").write_text(BABBLES)
    command = f"{sys.executable} {tmp_path / 'adapter.py'} {tmp_path / 'lines'} {tmp_path / 'said'}"
    run = Session(Choice(port=command), _hosts=found[:1])
    (case,) = (case for case in CASES if case.id == "ACK-1a")
    try:
        outcomes = [try_case(run, case, run.witnesses[0]) for _ in lines]
        assert [(outcome.status, outcome.failure.kind) for outcome in outcomes if outcome.failure] == [
            (FAILED, "protocol" if _is_an_object(line) else "garbage") for line in lines
        ]
        assert try_case(run, case, run.witnesses[0]).status == PASSED
        files = {option: tmp_path / option for option in WRITERS}
        assert write_reports(run, len(lines), files) == []
        assert json.loads((tmp_path / "--report-json").read_text())["counts"]["failed"] == len(lines)
    finally:
        run._hosts = []  # the server is another's
        run.close()


def _is_an_object(line: bytes) -> bool:
    try:
        return isinstance(parse(line), dict)
    except PortError:
        return False


def test_check_port_explains_them() -> None:
    """What the runner refuses is a mistake by the schema as well, in a sentence."""
    for number in range(300):
        line = malformed(number, ANSWERS)
        if line.op != "state" and _is_an_object(line.data):
            (mistake,) = mistakes_in(line.op, parse(line.data))
            assert mistake.startswith(f"{line.op}: ")
            assert len(mistake) < LONGEST


def test_every_malformed_request_is_named_by_the_oracle() -> None:
    """So does the oracle, a process that is sent lines by programs under construction: a fault each, and it lives."""
    lines = [malformed(number, REQUESTS) for number in range(LINES)]
    sent = b"".join(line.data + b"\n" for line in lines) + b'{"id": 2, "op": "state"}\n'
    done = subprocess.run([sys.executable, "-m", "model"], input=sent, capture_output=True, cwd=ROOT, check=True)
    answers = [json.loads(answer) for answer in done.stdout.splitlines()]
    assert len(answers) == LINES + 1
    for line, answer in zip(lines, answers, strict=False):
        assert answer.keys() - {"id"} == {"fault"}
        expect_clear(line, answer["fault"])
    assert answers[-1]["state"]["queues"] == []
