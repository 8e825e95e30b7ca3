"""The first checker on a history and lines made for each of its rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.operation import Ok
from redisq.scripts import SCRIPTS
from tests.concurrency.history import FOREVER_NS, History
from tests.concurrency.server_order import check
from tests.concurrency.test_blackbox import END, history
from tests.concurrency.verdict import ACCEPTED, REJECTED, UNKNOWN, Verdict
from tests.support.replay.monitor import Entry, line

KNOWN = {script.sha: name for name, script in SCRIPTS.items()}
CALLS = [
    '0+1 a: publish group="g" payload="1" -> 1',
    '2+1 a: claim token="A" visibility_ms=1000 -> group="g" payload="1"',
    '4+1 a: ack group="g" token="A" -> 1',
    END.replace("drain", "a"),
]
PUBLISH = ["publish redisq g 1 0 0", "HGET redisq:prio g", "LLEN redisq:q:g", "ZADD redisq:ready:0 NX 0 g",
           "HSET redisq:prio g 0", "RPUSH redisq:q:g 1"]  # fmt: skip
CLAIM = ["claim redisq - 1000 A 8 0", "TIME", "ZRANGEBYSCORE redisq:ready:0 -inf 1000 WITHSCORES LIMIT 0 1",
         "GETEX redisq:lock:g", "LINDEX redisq:q:g 0", "SET redisq:lock:g A PX 1000",
         "ZADD redisq:ready:0 2000 g"]  # fmt: skip
ACK = ["ack redisq g A -", "GET redisq:lock:g", "LLEN redisq:q:g", "HGET redisq:prio g", "DEL redisq:lock:g",
       "LPOP redisq:q:g", "HDEL redisq:prio g", "ZREM redisq:ready:0 g"]  # fmt: skip
NOTHING = ["claim redisq - 1000 last 8 0", "TIME", "ZRANGEBYSCORE redisq:ready:0 -inf 1000 WITHSCORES LIMIT 0 1"]


def lines(*scripts: list[str], sources: str = "c:1") -> list[bytes]:
    """The lines of these scripts, all in one millisecond; ``-`` is an empty argument."""
    told = []
    for script, source in zip(scripts, [*sources.split(), *[sources.split()[-1]] * len(scripts)], strict=False):
        op, *argv = script[0].split()
        words = ["EVALSHA", SCRIPTS[op].sha, "1", "redisq:prio", *argv]
        told.append(Entry(1_000_000, 0, source, tuple(b"" if word == "-" else word.encode() for word in words)))
        told += [Entry(1_000_000, 0, "lua", tuple(w.encode() for w in text.split())) for text in script[1:]]
    return [line(entry) for entry in told]


def checked(calls: list[str], told: list[bytes]) -> Verdict:
    """The verdict on these calls of one lane, with two connections."""
    made = history(*calls)
    return check(History(made.records, told, {"c:1": "a", "c:2": "a"}), b"redisq", KNOWN)


GOOD = lines(PUBLISH, CLAIM, ACK, NOTHING)


def test_good_history() -> None:
    """Every reply is the model's at its place."""
    found = checked(CALLS, GOOD)
    assert found.kind == ACCEPTED, str(found)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("-> 1", "-> 2"),
        ('payload="1"\n', 'payload="2"\n'),
        ('ack group="g" token="A" -> 1', 'ack group="g" token="A" -> 0'),
        ("-> nil", '-> group="g" payload="1"'),
    ],
)
def test_a_reply_that_the_model_does_not_give(good: str, bad: str) -> None:
    """A reply that was told to the client and is not the model's there is found, whatever the keys are."""
    found = checked("\n".join([*CALLS, ""]).replace(good, bad, 1).strip().split("\n"), GOOD)
    assert found.kind == REJECTED
    assert found.why.startswith("REPLY lane a")


def test_a_lost_reply_and_a_lost_request() -> None:
    """An unknown call may be among the steps, or not."""
    lost = [CALLS[0].removesuffix(" -> 1"), *CALLS[1:]]
    assert checked(lost, GOOD).kind == ACCEPTED
    again = [*CALLS[:2], CALLS[2].removesuffix(" -> 1"), CALLS[2].replace("4+1", "6+1"), CALLS[3]]
    assert checked(again, GOOD).kind == ACCEPTED


def test_a_call_that_the_client_repeated() -> None:
    """A call that ran twice on two connections was repeated by the client; the last reply is the answer."""
    repeated = lines(PUBLISH, CLAIM, ACK, ACK[:2], NOTHING, sources="c:1 c:1 c:1 c:2")
    refused = [line.replace('"A" -> 1', '"A" -> 0') for line in CALLS]
    assert checked(refused, repeated).kind == ACCEPTED
    assert checked(CALLS, repeated).kind == REJECTED


def test_steps_that_nobody_called() -> None:
    """What the server ran and no lane called is no history of these clients."""
    assert checked([*CALLS[:2], CALLS[3]], GOOD).kind == REJECTED
    foreign = lines(PUBLISH, CLAIM, ACK, NOTHING, sources="c:9")
    assert checked(CALLS, foreign).kind == UNKNOWN


def test_a_step_that_cannot_be() -> None:
    """What the replay finds rejects the history."""
    found = checked(CALLS, lines(PUBLISH, CLAIM, [*ACK[:5], "RPOP redisq:q:g", "LPOP redisq:q:g"], NOTHING))
    assert found.kind == REJECTED
    assert found.group == b"g"


def test_what_cannot_be_told_is_no_pass() -> None:
    """A queue that is not drained, and a command that is not understood, leave it unknown."""
    assert checked(CALLS[:2], lines(PUBLISH, CLAIM)).kind == UNKNOWN
    odd = line(Entry(1_000_000, 0, "c:1", (b"LMPOP", b"1", b"redisq:q:g", b"LEFT")))
    assert checked(CALLS, [*GOOD, odd]).kind == UNKNOWN


def test_a_lease_that_is_settled_twice() -> None:
    """Where nack is no script the steps do not tell it; a lease that it gave back is dead all the same."""
    twice = [*CALLS[:2], '3+1 a: nack group="g" token="A" delay_ms=5 -> 1', *CALLS[2:]]
    records = history(*twice).records
    found = check(History(records, GOOD, {"c:1": "a"}), b"redisq", KNOWN, unscripted=frozenset(["nack"]))
    assert found.kind == REJECTED
    assert found.why.startswith("SETTLED")


def test_lengths_that_are_not_told() -> None:
    """Old clients answer 1 to every publish."""
    records = history(*CALLS).records
    records[0] = replace(records[0], reply=Ok(7))
    told = History(records, GOOD, {"c:1": "a"})
    assert check(told, b"redisq", KNOWN).kind == REJECTED
    assert check(told, b"redisq", KNOWN, tells_lengths=False).kind == ACCEPTED
    assert records[0].completed_ns < FOREVER_NS
