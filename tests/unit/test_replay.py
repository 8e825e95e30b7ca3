"""The replay: steps that a queue of the spec takes are possible, and of each that none takes, the first is found."""

from __future__ import annotations

import pytest

from model.state import State
from redisq.scripts import SCRIPTS
from tests.support.replay.monitor import Entry
from tests.support.replay.replay import Finding, Replay

KNOWN = {script.sha: name for name, script in SCRIPTS.items()}
PUBLISH = ["1000 p ZADD q:ready:0 NX 0 g", "1000 p HSET q:prio g 0", "1000 p RPUSH q:q:g m1", "1000 p RPUSH q:q:g m2"]
CLAIM = [
    "1010 a EVAL claim 0 A",
    "1010 lua LINDEX q:q:g 0",
    "1010 lua SET q:lock:g A PX 500",
    "1010 lua ZADD q:ready:0 1510 g",
]
ACK = [
    "1020 a EVAL ack 0 A",
    "1020 lua GET q:lock:g",
    "1020 lua DEL q:lock:g",
    "1020 lua LPOP q:q:g",
    "1020 lua ZADD q:ready:0 1020 g",
]
HELD = [*PUBLISH, *CLAIM]


def entry(text: str) -> Entry:
    """``MS SOURCE COMMAND …``."""
    at, source, *words = text.split()
    return Entry(int(at) * 1000, 0, source, tuple(word.encode() for word in words))


def replayed(*lines: str) -> Replay:
    """The replay of these lines."""
    replay = Replay(b"q", KNOWN)
    for text in lines:
        replay.add(entry(text))
    replay.end()
    return replay


def found(*lines: str) -> Finding | None:
    """What it found."""
    return replayed(*lines).finding


POSSIBLE = {
    "a script's claim and ack": [*HELD, *ACK],
    "an ack of several commands, by the connection that claimed": [
        *PUBLISH,
        "1010 a SET q:lock:g A NX PX 500",
        "1010 a ZADD q:ready:0 1510 g",
        "1020 a LPOP q:q:g",
        "1020 a ZADD q:ready:0 1020 g",
        "1020 a DEL q:lock:g",
    ],
    "an ack of several commands, by one that has read its token": [
        *HELD,
        "1020 b GET q:lock:g",
        "1020 b DEL q:lock:g",
        "1020 b LPOP q:q:g",
        "1020 b ZADD q:ready:0 1020 g",
    ],
    "a transaction that is whole at its end": [
        "1000 p MULTI",
        "1000 p RPUSH q:q:g m",
        "1000 p ZADD q:ready:0 0 g",
        "1000 p HSET q:prio g 0",
        "1000 p EXEC",
    ],
    "a lock that has ended is taken by another": [*HELD, "1600 b EVAL claim 0 B", "1600 lua SET q:lock:g B PX 500"],
    "a lock that is not taken, because it is there": [*HELD, "1020 b SET q:lock:g B NX PX 500", *ACK],
    "an extend": [*HELD, "1020 a EVAL extend 0 A", "1020 lua PEXPIRE q:lock:g 900", "1020 lua ZADD q:ready:0 1920 g"],
    "parking by the holder": [*HELD, "1020 a EVAL nack 0 A", "1020 lua SET q:lock:g parked PX 50"],
    "the keys of another queue, and of another database": [*PUBLISH, "1001 x LPOP other:q:g", "1001 x DEL q:q:"],
    "drained by LREM or LTRIM": [
        *HELD,
        "1020 a EVAL ack 0 A",
        "1020 lua LREM q:q:g 1 m1",
        "1020 lua DEL q:lock:g",
        "1030 a EVAL claim 0 C",
        "1030 lua SET q:lock:g C PX 500",
        "1040 a EVAL ack 0 C",
        "1040 lua LTRIM q:q:g 1 -1",
        "1040 lua HDEL q:prio g",
        "1040 lua ZREM q:ready:0 g",
        "1040 lua UNLINK q:lock:g",
    ],
}
IMPOSSIBLE = {
    "a live lock is replaced": ("LOCK", [*HELD, "1020 b SET q:lock:g B PX 500"]),
    "a live lock is replaced by a script": ("LOCK", [*HELD, "1020 b EVAL x 0 B", "1020 lua SET q:lock:g B PX 500"]),
    "a lock is deleted by one who does not hold it": ("DEL", [*HELD, "1020 b DEL q:lock:g"]),
    "a lock is deleted by a script without its token": ("DEL", [*HELD, "1020 b EVAL x 0 B", "1020 lua DEL q:lock:g"]),
    "a nack of several commands frees another's group": (
        "DEL",
        [
            *HELD,
            "1020 a GET q:lock:g",
            "1600 b EVAL claim 0 B",
            "1600 lua SET q:lock:g B PX 500",
            "1610 a ZADD q:ready:0 0 g",
            "1610 a DEL q:lock:g",
        ],
    ),
    "another's lease is renewed": ("EXTEND", [*HELD, "1020 b PEXPIRE q:lock:g 9000"]),
    "a lock without an end": ("TTL", [*PUBLISH, "1010 a SET q:lock:g A"]),
    "a lock that loses its end": ("TTL", [*HELD, "1020 a PERSIST q:lock:g"]),
    "a list that gets an end": ("TTL", [*HELD, "1020 a EXPIRE q:q:g 10"]),
    "an index that gets an end": ("TTL", [*HELD, "1020 a PEXPIRE q:ready:0 10"]),
    "a pop without a lease": ("POP", [*PUBLISH, "1020 b LPOP q:q:g"]),
    "a pop from another's lease": ("POP", [*HELD, "1020 b EVAL ack 0 B", "1020 lua LPOP q:q:g"]),
    "two pops by one lease": ("POP", [*HELD, "1020 a EVAL ack 0 A", "1020 lua LPOP q:q:g", "1020 lua LPOP q:q:g"]),
    "a pop after the group went on to another": (
        "POP",
        [*HELD, "1020 a EVAL x 0 A", "1020 lua DEL q:lock:g", "1030 b SET q:lock:g B PX 500", "1040 a LPOP q:q:g"],
    ),
    "a message that is pushed at the head": ("LIST", [*PUBLISH, "1020 p LPUSH q:q:g m0"]),
    "a message that is popped at the tail": ("LIST", [*HELD, "1020 a RPOP q:q:g"]),
    "a list that is deleted": ("LIST", [*PUBLISH, "1020 x DEL q:q:g"]),
    "a list that is replaced": ("LIST", [*PUBLISH, "1020 x SET q:q:g s"]),
    "everything is deleted": ("LIST", [*PUBLISH, "1020 x FLUSHDB"]),
    "a group in two tiers": ("TIERS", [*PUBLISH, "1020 p ZADD q:ready:3 0 g"]),
    "a message before its entry": ("INDEX", ["1000 p RPUSH q:q:g m"]),
    "an entry that is lost": ("INDEX", [*PUBLISH, "1020 x ZREM q:ready:0 g"]),
    "a script that leaves a drained group's entry": (
        "INV-STALE",
        [*HELD, "1020 a EVAL ack 0 A", "1020 lua LPOP q:q:g", "1020 lua LPOP q:q:g"],
    ),
    "a transaction that leaves no entry": ("INV-INDEX", ["1 p MULTI", "1 p RPUSH q:q:g m", "1 p EXEC"]),
    "a priority that is another than the tier": (
        "INV-TIER",
        [*PUBLISH, "1020 p EVAL x 0", "1020 lua HSET q:prio g 3"],
    ),
}


@pytest.mark.parametrize("name", POSSIBLE)
def test_possible(name: str) -> None:
    """Steps of a good queue pass, whatever commands a port takes them by."""
    replay = replayed(*POSSIBLE[name])
    assert replay.finding is None, str(replay.finding)
    assert replay.steps
    assert not replay.not_judged


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    """A step that no good queue takes is found when it is taken, by the rule that it breaks."""
    rule, lines = IMPOSSIBLE[name]
    finding = found(*lines)
    assert finding is not None
    assert any(what.startswith(f"{rule} ") for what in finding.what), finding
    assert finding.group == b"g"


def test_the_trace_is_of_the_notation() -> None:
    """A port's scripts are told as the operations that they were; the step that cannot be stands as it is."""
    finding = found(*HELD, "1020 b DEL q:lock:g")
    assert finding is not None
    *_, claim, last = finding.trace
    assert claim.split() == ["1010", "claim", 'token="A"', "->", 'group="g"', 'payload="m1"']
    assert last == '# 1020 b "DEL" "q:lock:g"'
    assert str(finding).splitlines()[-1] == f"> {last}"
    assert "which holds it until 15" in finding.what[0]


@pytest.mark.parametrize("command", ["LMPOP 1 q:q:g LEFT", "LSET q:q:g 0 m", "ZPOPMIN q:ready:0", "HINCRBY q:prio g 1"])
def test_what_is_not_understood_is_no_pass(command: str) -> None:
    """Of a command that is not known here it cannot be told what it did: the group is judged no further."""
    replay = replayed(*PUBLISH, f"1020 x {command}", "1030 b LPOP q:q:g")
    assert replay.finding is None
    assert b"g" in replay.not_judged
    assert replay.counts[f"not understood: {command.split()[0]}"] == 1


def test_lock_taken_or_not_at_its_deadline() -> None:
    """SET NX in the millisecond of the deadline may have taken the lock or not; the next that is certain counts."""
    replay = replayed(*HELD, "1510 b SET q:lock:g B NX PX 500", "1511 b DEL q:lock:g", "1512 b SET q:lock:g C PX 500")
    assert replay.finding is None
    assert replay.counts["locks taken or not in the millisecond of their deadline"] == 1
    assert replay.add(entry("1520 x DEL q:lock:g")) is None
    assert (finding := replay.end()) is not None
    assert finding.what[0].startswith("DEL ")


def script(at: int, op: str, argv: str, *nested: str) -> list[str]:
    """A run of the package's script."""
    return [f"{at} c EVALSHA {SCRIPTS[op].sha} 1 q:prio q {argv}", *(f"{at} lua {command}" for command in nested)]


KNOWN_PUBLISH = script(1000, "publish", "g m 0 0", "HGET q:prio g", "LLEN q:q:g", "ZADD q:ready:0 NX 0 g",
                       "HSET q:prio g 0", "RPUSH q:q:g m")  # fmt: skip


def test_known_script() -> None:
    """A run of a known script is the model's, to the key and the millisecond."""
    replay = replayed(*KNOWN_PUBLISH)
    assert (replay.finding, replay.steps) == (None, 1)


def test_known_script_that_does_otherwise() -> None:
    """A key that differs from the model's is named, with both values."""
    finding = found(*(line.replace("NX 0", "NX 7") for line in KNOWN_PUBLISH))
    assert finding is not None
    assert any("ready:0" in what and "expected 0, got 7" in what for what in finding.what)


def test_known_script_that_was_refused_midway() -> None:
    """A full server ends a script before its writes: that is counted, and no fault of the script."""
    replay = replayed(*KNOWN_PUBLISH[:3])
    assert replay.finding is None
    assert replay.counts["scripts refused midway"] == 1


def test_script_that_the_server_has_forgotten() -> None:
    """EVALSHA without a command behind it was answered NOSCRIPT: nothing happened."""
    replay = replayed(KNOWN_PUBLISH[0], *KNOWN_PUBLISH)
    assert replay.finding is None


def test_after_the_first_finding_nothing_is_judged() -> None:
    """The first impossible step ends it: what follows from it would be noise."""
    finding = found(*HELD, "1020 b DEL q:lock:g", "1021 b LPOP q:q:g")
    assert finding is not None
    assert finding.what[0].startswith("DEL ")


def test_what_was_wrong_before() -> None:
    """A group that was wrong when the replay began is not held against others, until it is as it should be."""
    replay = Replay(b"q", KNOWN)
    replay.learn(b"g", State(0, {b"g": (b"m",)}, {}, ({}, {}, {}, {}, {}), {b"g": b"0"}))
    for text in ["1000 p RPUSH q:q:g m2", "1010 p ZADD q:ready:0 0 g", "1020 b LPOP q:q:g"]:
        assert replay.add(entry(text)) is None
    assert (finding := replay.end()) is not None
    assert finding.what[0].startswith("POP ")
    assert finding.number == 3


def test_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many groups a claim is held against the rules alone, which is counted."""
    monkeypatch.setattr("tests.support.replay.replay.MOST_GROUPS", 0)
    claim = script(1010, "claim", "- 500 A 8 0", "SET q:lock:g A PX 500", "ZADD q:ready:0 1510 g")
    replay = replayed(*KNOWN_PUBLISH, *(text.replace(" - ", " 1010 ") for text in claim))
    assert replay.finding is None
    assert replay.counts["claims held against the rules alone"] == 1


def test_a_script_that_is_cut_off() -> None:
    """At the end of a file a script may not be whole, so it is not judged; a command is."""
    replay = Replay(b"q", KNOWN)
    for text in KNOWN_PUBLISH[:4]:
        replay.add(entry(text))
    assert replay.end(cut=True) is None
    assert replay.steps == 0
    replay.add(entry("1000 p RPUSH q:q:g m"))
    assert replay.end(cut=True) is not None
