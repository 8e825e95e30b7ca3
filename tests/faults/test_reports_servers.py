"""Reports of servers: script caches, cost, numbers, and scripts that one server takes and another refuses."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest
from redis.exceptions import NoScriptError

from model.operation import ARGV, Error
from redisq import batch
from redisq.scripts import SCRIPTS
from tests.faults.hostile import MOST, PAGES, claim_commands
from tests.faults.judge import Control, Judge
from tests.faults.rig import Check, Rig, codes, needs_exact_clock
from tests.faults.transports import KINDS, everything_once, transport
from tests.support.running import BaseServer

FLUSH = "SCRIPT FLUSH"


class Flushing:
    """A client whose server has lost its script cache before each script, inside pipelines too."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """One script."""
        self.client.execute_command(FLUSH)
        return self.client.execute_command(*args, **options)

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline of scripts."""
        return FlushingPipe(self.client.pipeline(transaction=transaction))


class FlushingPipe:
    """Such a pipeline."""

    def __init__(self, pipe: Any) -> None:
        self.pipe = pipe

    def execute_command(self, *args: Any, **options: Any) -> None:
        """One script more."""
        self.pipe.execute_command(FLUSH)
        self.pipe.execute_command(*args, **options)

    def execute(self, raise_on_error: bool) -> Any:
        """The replies of the scripts."""
        return self.pipe.execute(raise_on_error=raise_on_error)[1::2]


class AsyncFlushing(Flushing):
    """The same for asyncio."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """One script."""
        await self.client.execute_command(FLUSH)
        return await self.client.execute_command(*args, **options)

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline of scripts."""
        return AsyncFlushingPipe(self.client.pipeline(transaction=transaction))


class AsyncFlushingPipe(FlushingPipe):
    """The same for asyncio."""

    async def execute(self, raise_on_error: bool) -> Any:
        """The replies of the scripts."""
        return (await self.pipe.execute(raise_on_error=raise_on_error))[1::2]


@pytest.mark.parametrize("kind", KINDS)
def test_script_flush_before_every_script(server: BaseServer, kind: str) -> None:
    """B40, B41, FAIL-8: with the script cache lost before every script, in pipelines too, each takes effect once."""
    wrap = AsyncFlushing if kind == "async" else Flushing
    with transport(kind, server.url, wrap=wrap) as queue:
        everything_once(queue)
    assert server.client().keys("*") == []


def test_a_client_that_never_reloads_is_seen(server: BaseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check fails where NOSCRIPT is not known for what it is."""
    monkeypatch.setattr(batch, "is_noscript", lambda reply: False)
    with transport("sync", server.url, wrap=Flushing) as queue, pytest.raises(NoScriptError):
        everything_once(queue)


def test_every_script_is_taken_as_it_lies(server: BaseServer) -> None:
    """B60: SCRIPT LOAD takes each script and gives the SHA that the library computes; all operations work."""
    client: Any = server.client()
    for script in SCRIPTS.values():
        assert client.script_load(script.source) == script.sha
    for kind in KINDS:
        with transport(kind, server.url) as queue:
            everything_once(queue)


CROWD = """
for n = 1, ARGV[2] do
  local group, tier = string.format('g%05.0f', n), string.format('%.0f', n % 5)
  redis.call('ZADD', ARGV[1] .. ':ready:' .. tier, '1', group)
  redis.call('HSET', ARGV[1] .. ':prio', group, tier)
  if ARGV[3] == 'locked' then
    redis.call('RPUSH', ARGV[1] .. ':q:' .. group, 'm')
    redis.call('SET', ARGV[1] .. ':lock:' .. group, 'token', 'PX', '30000')
  elseif ARGV[3] == 'broken' then
    redis.call('SET', ARGV[1] .. ':q:' .. group, 'no list')
    redis.call('HSET', ARGV[1] .. ':lock:' .. group, 'no', 'lock')
  end
end
"""
MANY = 10_000
COST = re.compile(rb"^-- COST .*at most (\d+)(?: pages of K)?$", re.MULTILINE)


def bounded_work(rig: Rig) -> None:
    """B51, ARG-8, CLAIM-16: among 10,000 groups, all in the way, no script runs more commands than is stated."""
    rig.expect(_costs(rig) == {**MOST, "claim": PAGES}, "the headers say other numbers")
    for op in MOST:
        _settling_cost(rig, op, MOST[op])
    for candidates in (1, 8, 99):
        for kind in ("locked", "stale", "broken"):
            for now_ms in (None, rig.now_ms):
                rig.reset()
                rig.raw("EVAL", CROWD, 0, rig.prefix, MANY, kind)
                claim = partial(rig.claim, "A", candidates=candidates, now_ms=now_ms)
                ran = rig.commands(claim)
                most = claim_commands(candidates)
                told = f"{ran.total()} commands before {MANY} {kind} groups, pages of {candidates}, not {most}"
                reached = kind == "broken" and now_ms is None and rig.host.clock.exact  # else the clock asks as well
                rig.expect(ran.total() == most if reached else ran.total() <= most, f"claim runs {told}")
                rig.expect(ran["TIME"] <= 1, "claim reads TIME more than once")


def _costs(rig: Rig) -> dict[str, int]:
    """What the headers say: the pages of a claim, and the commands of the others."""
    return {op: int(COST.findall(source)[0]) for op, source in rig.caller.lua.source.items()}


def _settling_cost(rig: Rig, op: str, most: int) -> None:
    """The dearest case: many messages, the field lost, an entry in no tier, and the server's clock."""
    rig.reset()
    rig.raw("EVAL", CROWD, 0, rig.prefix, MANY, "locked")
    for _ in range(3):
        rig.publish("g", "m")
    rig.raw("EVAL", "for n = 1, 10000 do redis.call('RPUSH', KEYS[1], n) end", 1, rig.key("q", "g"))
    rig.raw("SET", rig.key("lock", "g"), "A", "PX", 30_000)
    rig.foreign("drop-prio", group="g")
    rig.foreign("drop-entry", group="g", tier=0)
    calls: dict[str, dict[str, Any]] = {
        "publish": {"payload": "m", "score_ms": None},
        "ack": {"token": "A"},
        "nack": {"token": "A", "delay_ms": 5},
        "extend": {"token": "A"},
    }
    ran = rig.commands(lambda: rig.do(op, group="g", **calls[op]))
    rig.expect(ran.total() <= most, f"{op} runs {ran.total()} commands, its header says at most {most}")
    rig.expect(ran["TIME"] <= 1, f"{op} reads TIME more than once")


INSTANTS = (0, 1, 10**12, 1_800_000_000_000, 10**13, 10**14, 999_999_999_999_999)
DURATIONS = (1, 100_000_000, 300_000_000, 10**11, 10**14, 999_999_999_999_999)


@needs_exact_clock
def exact_numbers(rig: Rig) -> None:
    """B56, TIME-6: scores and deadlines are exact to the millisecond up to fifteen digits; more digits are refused."""
    for now_ms in INSTANTS:
        for px in DURATIONS:
            rig.reset()
            rig.publish("g", "m", score_ms=now_ms)
            rig.expect(rig.score("g") == now_ms, f"the score of {now_ms} is {rig.score('g')}")
            rig.claim("A", now_ms=now_ms, visibility_ms=px)
            _exact(rig, "claim", now_ms + px, px)
            rig.extend("g", "A", now_ms=now_ms, visibility_ms=px)
            _exact(rig, "extend", now_ms + px, px)
            rig.nack("g", "A", now_ms=now_ms, delay_ms=px)
            _exact(rig, "nack", now_ms + px, px)
    for op, name in (("publish", "score_ms"), ("claim", "now_ms"), ("claim", "visibility_ms"), ("nack", "delay_ms")):
        rig.reset()
        held = {"publish": {}, "claim": {"token": "A"}, "nack": {"token": "A"}}[op]
        group = {} if op == "claim" else {"group": "g"}
        reply = rig.do(op, **group, **held, **{name: 10**15})
        rig.expect(isinstance(reply, Error) and reply.code == "REDISQ_BADARG", f"{op} takes sixteen digits of {name}")
        rig.expect_empty()


def _exact(rig: Rig, op: str, score: int, px: int) -> None:
    lock = rig.state().lock(b"g")
    rig.expect(rig.score("g") == score, f"{op}: the score is {rig.score('g')}, not {score}")
    deadline = rig.now_ms + px
    rig.expect(lock and lock.deadline_ms == deadline, f"{op}: the lock ends at {lock}, not at {deadline}")


def refusals_by_code(rig: Rig) -> None:
    """B54: a caller tells our refusals by their code, whatever words a server puts around other errors."""
    rig.publish("g", "m")
    rig.raw("DEL", rig.key("q", "g"))
    rig.raw("SET", rig.key("q", "g"), "no list")
    for op in ARGV:
        bad = rig.do(op, **{} if op == "claim" else {"group": ""}, **{} if op == "publish" else {"token": ""})
        rig.expect(codes(bad) == "REDISQ_BADARG", f"{op}: the refusal has the code {codes(bad)!r}")
    wrong = rig.do("publish", group="g", payload="m")
    rig.expect(codes(wrong) and codes(wrong) != "REDISQ_BADARG", "an error of the server has our code, or is none")


CHECKS = [bounded_work, exact_numbers, refusals_by_code]
CLAIMED = "redis.call('ZADD', best[3], string.format('%.0f', now + px), best[1])"
LOSES = "redis.call('ZADD', best[3], tostring(now + px), best[1])"
TRIES = "redis.call('PEXPIRE', lock, px)"
LOOKED = "local payload, ttl = look(ready, group)"
CONTROLS = [
    Control(bounded_work, "claim runs", "page-budget-not-decreased"),
    Control(bounded_work, "claim runs", edits={"claim": (LOOKED, f"{LOOKED}\nfurther_pages = 16")}),
    Control(bounded_work, "extend runs", edits={"extend": (TRIES, f"for i = 1, 9 do {TRIES} end")}),
    Control(exact_numbers, "claim: the score is", edits={"claim": (CLAIMED, LOSES)}),
    Control(exact_numbers, "nack takes sixteen digits of delay_ms", edits={"nack": ("#delay < 16", "#delay < 17")}),
    Control(refusals_by_code, "ack: the refusal has the code", edits={"ack": ("'REDISQ_BADARG '", "'ERR '")}),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_scripts(judge: Judge, check: Check) -> None:
    """B51, B54, B56: bounded work, exact numbers, and errors known by their code."""
    judge.passes(check)


@pytest.mark.parametrize("control", CONTROLS, ids=str)
def test_scripts_undone(judge: Judge, control: Control) -> None:
    """Each of these checks finds the scripts that get it wrong."""
    judge.convicts(control)
