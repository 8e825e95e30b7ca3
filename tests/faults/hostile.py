"""Hostile callers: what they send, how it is judged, and how many commands each call may make its script run."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st

from model import arguments
from model.operation import ARGV, Delivery, Ok, Operation, Reply
from model.run import World
from redisq.keys import FAMILIES
from tests.differential.machine import BAD, BAD_NUMBERS, REAL_MS
from tests.faults.rig import Fault, Rig
from tests.support.shifted import trial
from tests.support.trial import Divergence
from tests.support.witness import SCRIPTS, Scripts

MOST = {"publish": 11, "ack": 13, "nack": 12, "extend": 11}
"""The commands that a script runs at most; of a claim see `most_commands`."""
LOOK = 7
"""Those of the worst entry that a claim meets: GETEX, TYPE, PTTL, LINDEX, TYPE, HDEL, ZREM."""
PAGES, TIERS = 21, 5


def most_commands(op: str, argv: Sequence[bytes]) -> int:
    """How many commands a call runs at most, whatever the queue holds: none if it is refused."""
    if arguments.check(op, argv) is not None:
        return 0
    return claim_commands(int(argv[4])) if op == "claim" else MOST[op]


def claim_commands(candidates: int) -> int:
    """The same of a claim with pages of K: TIME, the head of each tier, and every entry of every page is the worst."""
    return 1 + TIERS * (1 + LOOK) + PAGES * (1 + LOOK * candidates)


class Counted(Scripts):
    """The scripts of a rig, each call of which must keep within its number of commands."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.host, rig.caller.lua)
        self.rig = rig

    def call(self, operation: Operation) -> Reply:
        """The reply; a `Fault` if too many commands ran for it."""
        replies: list[Reply] = []
        ran = self.rig.commands(lambda: replies.append(Scripts.call(self, operation))).total()
        most = most_commands(operation.op, operation.to_argv())
        if ran > most:
            raise Fault(f"{self.rig.caller.name}: {operation.op} runs {ran} commands, not at most {most}: {operation}")
        return replies[0]


# What they send. A few values each, so that calls meet, and any bytes at all.

PREFIXES = [b"redisq", b"redisq:", b"redis", b"redisq:prio", b"redisq:x", b"{redisq}", b"q", b"\x00", b"redisq\n"]
GROUPS = [
    b"g",
    b"g\x00",
    b"x:q:g",
    b"lock:g",
    b"q:g",
    b"ready:0",
    b"0",
    b"prio",
    b":",
    b"parked",
    b"*",
    b"[^a]?",
    b"{g}",
    b"}{",
    b"%s%d",
    b"\xff\xfe",
    b"-inf",
    b"(0",
    b"\r\n$3\r\nDEL\r\n",
    b"' .. redis.call('FLUSHALL') .. '",
    b"redisq:q:g",
]
TOKENS = [b"A", b"B", b"parked ", b"parked\x00", b"Parked", b"\x00", b"0", b"nil"]
INSTANTS = [b"", b"", b"0", b"1", b"%d" % REAL_MS, b"%d" % (REAL_MS + 60_000), b"9" * 15]
DURATIONS = [b"1000", b"1", b"30000", b"9" * 15]
PRIORITIES = [b"0", b"1", b"4", b"5", b"-1", b"-" + b"9" * 400, b"9" * 400, b"10", b"40"]
GOOD = {
    "prefix": PREFIXES,
    "group": GROUPS,
    "payload": [b"", b"m", b"\x00\xff\r\n"],
    "priority": PRIORITIES,
    "min_priority": PRIORITIES,
    "score": INSTANTS,
    "now": INSTANTS,
    "px": DURATIONS,
    "delay": [*DURATIONS, b"0"],
    "token": TOKENS,
    "K": [b"8", b"1", b"2", b"99"],
}
NEAR = (*BAD_NUMBERS, b"", b"-", b"--1", b"00", b"1" + b"0" * 15, b"100", b"1e1", b"\xb2", b"\xd9\xa1", b"9" * 5_000)
"""Numbers to somebody: with a sign, an exponent, digits of another script, too many of them."""

anything = st.binary(max_size=12)
crowds = st.fixed_dictionaries(
    {
        "prefix": st.just(PREFIXES[0]),
        "size": st.sampled_from([3, 30]),
        "tier": st.sampled_from([0, 0, 3]),
        "score_ms": st.sampled_from([0, REAL_MS - 500]),
        "visibility_ms": st.sampled_from([0, 30_000]),
        "messages": st.sampled_from([0, 1]),
    }
)
FOREIGN = ("drop-list", "break-list", "persist-lock", "drop-lock", "break-lock", "drop-prio")


def apart(prefix: bytes) -> bool:
    """Whether a queue of this prefix shares no key with another one: E8, which the client refuses."""
    return not any(part.decode("latin-1") in FAMILIES for part in prefix.split(b":")[1:])


@st.composite
def argv(draw: st.DrawFn, op: str, lease: tuple[bytes, ...] = ()) -> tuple[bytes, ...]:
    """The ARGV of a call: right, right but for a value or two, too short or too long, or any bytes.

    Where it settles, it is by `lease`: prefix, group and token.
    """
    kind = draw(st.sampled_from(["right"] * 5 + ["near", "near", "cut", "any"]))
    if kind == "any":
        return tuple(draw(st.lists(st.one_of(anything, st.sampled_from(NEAR)), max_size=8)))
    names = ARGV[op]
    # Mostly the first few values, so that calls meet one another's groups and leases.
    values = [draw(st.sampled_from(GOOD[name][: draw(st.sampled_from([1, 1, 1, 2, 99]))])) for name in names]
    values[: len(lease)] = lease
    if kind == "cut":
        values = (values + draw(st.lists(anything, max_size=3)))[: draw(st.integers(0, 8))]
    for _ in range(draw(st.integers(1, 2)) if kind == "near" else 0):
        at = draw(st.integers(0, len(values) - 1))
        values[at] = draw(st.one_of(st.sampled_from(NEAR), st.sampled_from(BAD.get(names[at], NEAR)), anything))
    return tuple(values)


@st.composite
def operations(draw: st.DrawFn) -> list[Operation]:
    """A trace of hostile calls, with foreign writes and pauses between them."""
    trace: list[Operation] = []
    leases: list[tuple[bytes, ...]] = []
    world = World(REAL_MS)
    for _ in range(draw(st.integers(6, 20))):
        op = draw(st.sampled_from([*SCRIPTS, *SCRIPTS, "publish", "claim", "claim", "crowd", "foreign", "wait"]))
        now_ms = world.now_ms
        if op == "wait":
            operation = Operation(op, now_ms + draw(st.sampled_from([1, 1000, 31_000])))
        elif op == "crowd":
            operation = Operation(op, now_ms, draw(crowds))
        elif op == "foreign":
            args = {"prefix": PREFIXES[0], "group": draw(st.sampled_from(GROUPS[:3]))}
            operation = Operation(draw(st.sampled_from(FOREIGN)), now_ms, args)
        else:
            lease = draw(st.sampled_from(leases[-3:])) if leases and op in ("ack", "nack", "extend") else ()
            operation = Operation(op, now_ms, argv=draw(argv(op, lease)))
            if operation.argv and not apart(operation.prefix):
                continue
        world, reply = world.step(operation)
        trace.append(operation)
        match reply, operation.argv:
            case Ok(Delivery(group)), (prefix, _, _, token, *_):
                leases.append((prefix, group, token))
    return trace


def near_misses(scripts: Scripts) -> None:
    """Each argument of each script in turn takes each of the near misses, beside a lease; judged as in `attack`."""
    first = {name: values[0] for name, values in GOOD.items()}
    tried = trial([scripts], REAL_MS, [first["prefix"]])
    try:
        for op, names in ARGV.items():
            for name in names:
                for value in dict.fromkeys([*NEAR, *BAD.get(name, ()), *GOOD[name]]):
                    if name == "prefix" and value not in (b"", first["prefix"]):
                        continue  # any other is that of another queue
                    for before in ("publish", "claim"):
                        tried.do(Operation(before, REAL_MS, argv=tuple(first[each] for each in ARGV[before])))
                    sent = tuple(value if each == name else first[each] for each in names)
                    tried.do(Operation(op, REAL_MS, argv=sent))
    except Divergence as divergence:
        raise Fault(divergence.report) from None


def attack(scripts: Scripts, examples: int) -> None:
    """So many traces, the same ones each time, held against the model step by step; a `Fault` where they differ.

    After every call the reply, and every key of the database, must be what the model says: for REDISQ_BADARG, what
    they were before.
    """

    @hypothesis.settings(
        max_examples=examples,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(operations())
    def run(trace: list[Operation]) -> None:
        prefixes = dict.fromkeys([PREFIXES[0], *(each.prefix for each in trace if each.op != "wait")])
        tried = trial([scripts], REAL_MS, [prefix for prefix in prefixes if prefix])
        for operation in trace:
            tried.do(operation)

    try:
        run()
    except Divergence as divergence:
        raise Fault(divergence.report) from None
