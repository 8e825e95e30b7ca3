"""The runner's side of the port protocol: whatever an adapter does, the run goes on and says what it was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from model.operation import Delivery, Error, Fault, Json, Ok, Operation, Unsupported
from model.state import State
from tests.support.port.check import check, mistakes_in
from tests.support.port.messages import Hello, reply, request
from tests.support.port.process import PortError, Process
from tests.support.port.witness import RESTARTS, Adapter, KeepingPort

ORACLE = f"{sys.executable} -m model"
ANSWERS = """
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"], "ok": None}
    %s
    print(json.dumps(answer), flush=True)
"""


def adapter(tmp_path: Path, does: str) -> str:
    """The command of an adapter that does this before it answers nil."""
    script = tmp_path / "adapter.py"
    script.write_text(ANSWERS % does, encoding="utf-8")
    return f"{sys.executable} {script}"


@pytest.mark.parametrize(
    ("does", "kind", "says"),
    [
        ("time.sleep(60)", "hang", "no answer within 0.5 s"),
        ("os._exit(3)", "crash", "ended with exit code 3"),
        ("os.kill(os.getpid(), 9)", "crash", "was killed by SIGKILL"),
        ("print('ready')", "garbage", "not JSON"),
        ("print('[1]')", "garbage", "no JSON object"),
        ("sys.stdout.buffer.write(b'\\xff\\n')", "garbage", "not UTF-8 at byte 0"),
        ("print('[' * 10**6)", "garbage", "nested too deeply"),
        ('print(\'{"id": 1, "ok": NaN}\')', "garbage", "NaN"),
        ("sys.stdout.write('x' * (1 << 25))", "oversized", "more than 16777216 bytes"),
        (r"print('{\"id\": 1, \"fault\": \"\\ud83d\"}')", "garbage", "half a surrogate pair"),
        ("answer['id'] = 7", "protocol", "the answer to id 1 has the id 7"),
        ("answer['id'] = True", "protocol", "the answer to id 1 has the id True"),
        ("os.close(1); time.sleep(60)", "crash", "closed its standard output"),
    ],
)
def test_no_answer_is_named(tmp_path: Path, does: str, kind: str, says: str) -> None:
    """A hang, a crash, noise, a line without end, another id: each has its name, and what came is shown."""
    command = adapter(tmp_path, f"print('on stderr', file=sys.stderr, flush=True); {does}")
    process = Process(command, 0.5 if "60" in does else 20)
    try:
        with pytest.raises(PortError) as failed:
            process.ask({"op": "hello"})
        assert (failed.value.kind, says in str(failed.value)) == (kind, True), str(failed.value)
        assert process.stderr_tail() == "on stderr"
    finally:
        process.kill()
        process.end()


def test_a_line_that_nobody_asked_for(tmp_path: Path) -> None:
    """A second line after an answer is noise, found at the next request."""
    process = Process(adapter(tmp_path, "print(json.dumps(answer), end='\\n\\n' if request['id'] == 1 else '\\n')"), 20)
    try:
        process.ask({"op": "a"})
        with pytest.raises(PortError, match="garbage"):
            process.ask({"op": "b"})
    finally:
        process.kill()
        process.end()


def test_a_large_message_both_ways(tmp_path: Path) -> None:
    """A payload larger than a pipe holds comes through."""
    process = Process(adapter(tmp_path, "answer['ok'] = request['payload']"), 20)
    try:
        assert process.ask({"op": "x", "payload": "y" * 3_000_000})["ok"] == "y" * 3_000_000
    finally:
        process.end()


@pytest.mark.parametrize("command", ["/nowhere/at/all", "", "'"])
def test_a_command_that_cannot_start(command: str) -> None:
    """It is named."""
    with pytest.raises(PortError, match=r"start: .*cannot be started"):
        Process(command, 1)


def test_the_budget_of_restarts(tmp_path: Path) -> None:
    """An adapter that dies at each operation is started again, but not for ever."""
    hello = "answer['ok'] = dict(protocol=1, name='n', language='l', version='v', capabilities=['server-clock'])"
    port = KeepingPort(Adapter(adapter(tmp_path, f"{hello} if request['op'] == 'hello' else os._exit(1)")))
    claim = Operation("claim", 0, {"token": b"A"})
    for _ in range(RESTARTS + 1):
        port.adapter.start()
        assert isinstance(port.do(claim), Fault)
    with pytest.raises(PortError, match="had to be started again 20 times"):
        port.adapter.start()
    port.reset(0)
    said = port.do(claim)
    assert isinstance(said, Fault)
    assert said.what == "crash: not asked: the adapter had to be started again 20 times before this"


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ("None", "protocol: state is answered"),
        ("{**state, 'now_ms': 'soon'}", "now_ms: an integer, not 'soon'"),
        ("{**state, 'ready': []}", "ready: 5 tiers, not 0"),
        ("os._exit(1)", "crash: the adapter ended with exit code 1"),
    ],
)
def test_a_state_that_cannot_be_read(tmp_path: Path, answers: str, says: str) -> None:
    """A port that keeps its own keys, and does not show them as it should, has failed at the operation before."""
    state = "state = dict(now_ms=0, queues=[], locks=[], ready=[[]] * 5, prio=[])"
    hello = "dict(protocol=1, name='n', language='l', version='v', capabilities=['server-clock'], state=True)"
    does = f"{state}; answer['ok'] = {hello} if request['op'] == 'hello' else None"
    shows = f"answer['state'] = {answers} if request['op'] == 'state' else None"
    port = KeepingPort(Adapter(adapter(tmp_path, f"{does}; {shows}")))
    try:
        port.reset(0)
        got, states = port.observe(Operation("claim", 0, {"token": b"A"}), [b"p"])
        assert isinstance(got, Fault)
        assert says in got.what
        assert states == {b"p": State()}
    finally:
        port.adapter.end()


def test_hello_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    """What does not say hello once is not waited for in every case."""
    dead = Adapter(adapter(tmp_path, "os._exit(1)"))
    with pytest.raises(PortError, match="exit code 1") as first:
        dead.start()
    with pytest.raises(PortError) as second:
        dead.start()
    assert second.value is first.value


HELLO: Json = {"protocol": 1, "name": "n", "language": "l", "version": "1", "capabilities": ["server-clock"]}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"protocol": 2}, "protocol is 1, not 2"),
        ({"name": ""}, "name is a text"),
        ({"version": "1" * 201}, "version is a text of 1 to 200 characters"),
        ({"capabilities": "all"}, "capabilities is a list"),
        ({"capabilities": ["speed"]}, "no such capability: 'speed'"),
        ({"capabilities": []}, "neither the capability server-clock nor takes_now_ms"),
        ({"takes_now_ms": 1}, "takes_now_ms is true or false"),
    ],
)
def test_hello_is_read_strictly(changes: Json, says: str) -> None:
    """A member that is wrong is named, by the runner and by the schema."""
    with pytest.raises(PortError) as refused:
        Hello.read({"id": 1, "ok": {**HELLO, **changes}})
    assert says in str(refused.value)
    assert mistakes_in("hello", {"id": 1, "ok": {**HELLO, **changes}}) or changes == {"capabilities": []}


@pytest.mark.parametrize(
    ("op", "answer", "due"),
    [
        ("ack", {"ok": 1}, Ok(1)),
        ("ack", {"ok": 1.0}, Ok(1)),
        ("claim", {"ok": None}, Ok(None)),
        ("claim", {"ok": {"group": {"utf8": "g"}, "payload": {"b64": "/w=="}}}, Ok(Delivery(b"g", b"\xff"))),
        ("claim", {"error": {"code": "REDISQ_BADARG", "arguments": ["K"]}}, Error("REDISQ_BADARG", ("K",))),
        ("claim", {"error": {"code": "REDISQ_BADARG", "message": "bad px: 0"}}, Error("REDISQ_BADARG", ("px",))),
        ("ack", {"error": {"code": "WRONGTYPE"}}, Error("WRONGTYPE")),
        ("ack", {"unsupported": "typed"}, Unsupported("typed")),
        ("ack", {"fault": "no"}, Fault("no")),
    ],
)
def test_answers_are_read(op: str, answer: Json, due: object) -> None:
    """Each of the four, and the schema takes them too."""
    assert reply(answer, op)[0] == due
    assert mistakes_in(op, {"id": 1, **answer}) == []


@pytest.mark.parametrize(
    ("op", "answer"),
    [
        ("ack", {"ok": True}),
        ("ack", {"ok": None}),
        ("ack", {"ok": 1.5}),
        ("ack", {"ok": 1, "fault": "both"}),
        ("ack", {}),
        ("claim", {"ok": 1}),
        ("claim", {"ok": {"group": {"utf8": "g"}}}),
        ("claim", {"ok": {"group": "g", "payload": {"utf8": ""}}}),
        ("claim", {"ok": {"group": {"utf8": "g"}, "payload": {"b64": "/w="}}}),
        ("ack", {"error": "no"}),
        ("ack", {"error": {"code": "X", "arguments": [1]}}),
        ("ack", {"unsupported": None}),
        ("ack", {"fault": 7}),
    ],
)
def test_answers_of_another_form_are_mistakes(op: str, answer: Json) -> None:
    """They are refused by the runner, and named by the schema."""
    with pytest.raises(PortError, match="protocol"):
        reply(answer, op)
    assert mistakes_in(op, {"id": 1, **answer})


def test_a_long_story_is_cut() -> None:
    """What an adapter says of a failure is shown, but not without end."""
    got, _ = reply({"fault": "x" * 10_000}, "ack")
    assert got == Fault("x" * 1_000 + "… (10,000 characters)")


def test_a_request_has_every_argument() -> None:
    """An adapter needs no defaults, and no integer is larger than a double holds."""
    assert request(Operation("claim", 5, {"token": b"A", "min_priority": 10**17})) == {
        "op": "claim",
        "time_ms": 5,
        "prefix": {"utf8": "redisq"},
        "now_ms": None,
        "visibility_ms": 30_000,
        "token": {"utf8": "A"},
        "candidates": 8,
        "min_priority": {"utf8": "100000000000000000"},
    }


def test_the_oracle_speaks_the_protocol(tmp_path: Path) -> None:
    """`--check-port` finds nothing to say about it, and something about an adapter that answers nil to everything."""
    assert check(ORACLE, "redis://nowhere", 0, None) == []
    found = check(adapter(tmp_path, "pass"), "redis://nowhere", 0, None)
    assert any(mistake.startswith("hello: ok") for mistake in found), found
    assert any(mistake.startswith("publish: ok") for mistake in found), found
