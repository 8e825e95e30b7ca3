"""The rule-based machine: random traces, biased to where queues break, that shrink to the shortest failing one.

Each rule is one step of the trace. Groups, leases and instants are drawn relative to what there is (the third last
lease, one millisecond after the next deadline), so that a shrunk trace is short and means the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from model.operation import ARGV, PREFIX, Delivery, Ok, Operation, Reply, Value
from tests.support.shifted import trial
from tests.support.trial import Divergence, Tally
from tests.support.witness import Witness

PREFIXES = (PREFIX, b"{p}:x", b"redisq:qq*")
# Three everyday ones, then what separators, binary-unsafe code and key patterns stumble over.
GROUPS = (b"a", b"b", b"c", b"q:a", b"\x00\r\n", b"{x}*?[", b"\xff\xfe", b"lock:a:ready:0")
PAYLOADS = (b"", b"\xff\x00\r\n")
SMALL_MS, REAL_MS = 1_000, 1_700_000_000_000
VISIBILITIES_MS = (100, 1_000, 30_000)
DELAYS_MS = (0, 100, 1_000)

# Arguments outside their forms. Each would pass somewhere: Lua's tonumber, Redis, or a client takes it.
BAD_NUMBERS = (
    b"1e3",
    b"007",
    b"+5",
    b" 5",
    b"5 ",
    b"0x10",
    b"1.0",
    b"2.5",
    b"nan",
    b"-0",
    b"inf",
    b"abc",
    b"1\n",
    b"\x001",
)
BAD: dict[str, tuple[bytes, ...]] = {
    "prefix": (b"",),
    "group": (b"",),
    "token": (b"", b"parked"),
    "priority": (*BAD_NUMBERS, b"", b"-", b"-01"),
    "min_priority": (*BAD_NUMBERS, b"", b"-", b"0.5"),
    "now": (*BAD_NUMBERS, b"-1", b"1" + b"0" * 15),
    "score": (*BAD_NUMBERS, b"-1", b"1" + b"0" * 15),
    "px": (*BAD_NUMBERS, b"", b"0", b"-1", b"1" + b"0" * 15),
    "delay": (*BAD_NUMBERS, b"", b"-1", b"1" + b"0" * 15),
    "K": (*BAD_NUMBERS, b"", b"0", b"-1", b"100"),
}
PRIORITIES: tuple[Value, ...] = (0, 1, 2, 3, 4, -1, 5, -20_000, 10**17)

groups = st.sampled_from(GROUPS)
few_groups = st.sampled_from(GROUPS[:3])
priorities = st.sampled_from(PRIORITIES)
# The server's clock, or a client's that is right, ahead or behind.
# How many leases ago the one was taken that is settled now: mostly the last, which mostly still lives.
LAST_LEASES = st.sampled_from([0, 0, 0, 1, 2, 3])
skews = st.sampled_from([None, None, None, 0, 40_000, -60_000, 1, -1])


@dataclass
class Setting:
    """What a machine runs against, and where it counts what it did."""

    witnesses: Sequence[Witness]
    tally: Tally
    boundaries: bool = True  # whether instants may be drawn to the millisecond
    found: Divergence | None = None  # the first divergence, whatever becomes of its exception


class QueueMachine(RuleBasedStateMachine):
    """Drives the model and every witness of its setting with the same operations."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting
        self.leases: list[tuple[bytes, bytes, bytes]] = []  # prefix, group, token, in the order of the claims
        self.claims = 0
        self.published = 0
        self.crowded = False

    @initialize(
        start_ms=st.sampled_from([SMALL_MS, REAL_MS]),
        prefixes=st.sampled_from([1, 1, 1, 3]),
        backlog=st.integers(0, 8),
    )
    def start(self, start_ms: int, prefixes: int, backlog: int) -> None:
        """A server at an instant of few digits or of as many as in life, with some messages waiting."""
        if not self.setting.boundaries:
            start_ms = REAL_MS  # the present of a real server: no instant of a trace is near 0
        self.trial = trial(self.setting.witnesses, start_ms, PREFIXES[:prefixes], self.setting.tally)
        for number in range(backlog):
            self._publish(GROUPS[number % len(GROUPS)], None, number // 3, 0, 0)

    def do(self, op: str, **args: Value) -> Reply:
        """One operation, now."""
        return self.step(Operation(op, self.trial.now_ms, args))

    def step(self, operation: Operation) -> Reply:
        """The same, of an operation with a time of its own; as the witnesses can be asked it, or not at all."""
        for witness in self.setting.witnesses:
            asked = witness.asked(operation, self.trial.state(operation.prefix))
            if asked is None:
                return Ok(None)
            operation = asked
        try:
            return self.trial.do(operation)
        except Divergence as divergence:
            self.setting.found = self.setting.found or divergence
            raise

    def prefix(self, number: int) -> bytes:
        return self.trial.prefixes[number % len(self.trial.prefixes)]

    def now(self, skew_ms: int | None) -> int | None:
        """What a caller passes as ``now``: nothing, or its own clock."""
        return None if skew_ms is None else max(0, self.trial.now_ms + skew_ms)

    # The queue's own operations

    @rule(group=groups, payload=st.sampled_from([None, *PAYLOADS]), priority=priorities, prefix=st.integers(0, 2))
    def publish(self, group: bytes, payload: bytes | None, priority: Value, prefix: int) -> None:
        self._publish(group, payload, priority, 0, prefix)

    @rule(
        group=few_groups,
        priority=st.sampled_from([0, 4, 2]),
        score=st.sampled_from(["first", "server", "client", "ahead"]),
        prefix=st.integers(0, 2),
    )
    def publish_known(self, group: bytes, priority: int, score: str, prefix: int) -> None:
        skew_ms = {"client": 0, "ahead": 40_000}.get(score)
        score_ms = 0 if score == "first" else self.now(skew_ms)
        self._publish(group, None, priority, score_ms, prefix)

    def _publish(self, group: bytes, payload: bytes | None, priority: Value, score_ms: int | None, prefix: int) -> None:
        self.published += 1
        payload = b"m%d" % self.published if payload is None else payload
        args: dict[str, Value] = {"prefix": self.prefix(prefix), "group": group, "payload": payload}
        self.do("publish", **args, priority=priority, score_ms=score_ms)

    @rule(
        visibility_ms=st.sampled_from(VISIBILITIES_MS),
        candidates=st.sampled_from([8, 1, 2, 99]),
        min_priority=st.sampled_from([0, 0, 0, 1, 2, 3, 4, -1, 7, -20_000, 10**17]),
        skew_ms=skews,
        prefix=st.integers(0, 2),
    )
    def claim(self, visibility_ms: int, candidates: int, min_priority: Value, skew_ms: int | None, prefix: int) -> None:
        self.claims += 1
        token = b"t%d" % self.claims
        under = self.prefix(prefix)
        args: dict[str, Value] = {"prefix": under, "token": token, "candidates": candidates}
        args |= {"visibility_ms": visibility_ms, "min_priority": min_priority, "now_ms": self.now(skew_ms)}
        reply = self.do("claim", **args)
        if isinstance(reply, Ok) and isinstance(reply.value, Delivery):
            self.leases.append((under, reply.value.group, token))

    @rule(candidates=st.sampled_from([8, 1]))
    def claim_plain(self, candidates: int) -> None:
        self.claim(1_000, candidates, 0, None, 0)

    @rule(visibility_ms=st.sampled_from([100, 1_000]))
    def claim_what_ends_next(self, visibility_ms: int) -> None:
        """Once the first lease or park is over."""
        self.wait_for_deadline(0, 1)
        self.claim(visibility_ms, 8, 0, None, 0)

    @rule(op=st.sampled_from(["ack", "nack", "extend"]), behind=st.booleans())
    def work(self, op: str, behind: bool) -> None:
        """A claim and its settlement, perhaps with a message published behind it in between."""
        before = len(self.leases)
        self.claim(1_000, 8, 0, None, 0)
        if len(self.leases) > before:
            if behind:
                self.do("publish", prefix=self.leases[-1][0], group=self.leases[-1][1], payload=b"behind")
            self._settle(op, 0)

    @precondition(lambda self: self.leases)
    @rule(lease=LAST_LEASES, skew_ms=skews)
    def ack(self, lease: int, skew_ms: int | None) -> None:
        self._settle("ack", lease, now_ms=self.now(skew_ms))

    @precondition(lambda self: self.leases)
    @rule(lease=LAST_LEASES, delay_ms=st.sampled_from(DELAYS_MS), skew_ms=skews)
    def nack(self, lease: int, delay_ms: int, skew_ms: int | None) -> None:
        self._settle("nack", lease, delay_ms=delay_ms, now_ms=self.now(skew_ms))

    @precondition(lambda self: self.leases)
    @rule(lease=st.integers(0, 1))
    def park(self, lease: int) -> None:
        self._settle("nack", lease, delay_ms=30_000, now_ms=None)

    @precondition(lambda self: self.leases)
    @rule(lease=LAST_LEASES, visibility_ms=st.sampled_from(VISIBILITIES_MS), skew_ms=skews)
    def extend(self, lease: int, visibility_ms: int, skew_ms: int | None) -> None:
        self._settle("extend", lease, visibility_ms=visibility_ms, now_ms=self.now(skew_ms))

    def _settle(self, op: str, lease: int, **args: Value) -> None:
        """By the last lease taken, or one before it, which may be over."""
        taken = self.leases[-1 - lease % len(self.leases)]
        self.do(op, **dict(zip(("prefix", "group", "token"), taken, strict=True)), **args)

    @precondition(lambda self: self.leases)
    @rule(
        op=st.sampled_from(["ack", "nack", "extend"]),
        foreign=st.sampled_from(["drop-prio", "set-prio", "drop-entry", "drop-list", "break-list"]),
    )
    def settle_after_foreign_write(self, op: str, foreign: str) -> None:
        """What the last lease's group is made of changed under its holder."""
        prefix, group, _ = self.leases[-1]
        args: dict[str, Value] = {}
        if foreign == "set-prio":
            args["value"] = b"2.5"
        elif foreign == "drop-entry":
            args["tier"] = self.trial.state(prefix).tier_that_knows(group) or 0
        self.do(foreign, prefix=prefix, group=group, **args)
        self._settle(op, 0)

    @rule(op=st.sampled_from(["ack", "nack", "extend"]), group=few_groups, token=st.sampled_from([b"t0", b"t1"]))
    def settle_without_lease(self, op: str, group: bytes, token: bytes) -> None:
        """By a token that nobody has, or that holds another group."""
        self.do(op, prefix=self.trial.prefixes[0], group=group, token=token)

    @rule(script=st.sampled_from(list(ARGV)), data=st.data())
    def malformed(self, script: str, data: st.DataObject) -> None:
        """A call with one argument that is not of its form, or with too few or too many."""
        good = {"prefix": self.trial.prefixes[0], "group": b"a", "payload": b"x", "priority": b"0", "token": b"t1"}
        good |= {"score": b"0", "now": b"", "px": b"1000", "delay": b"0", "K": b"8", "min_priority": b"0"}
        names = ARGV[script]
        argv = [good[name] for name in names]
        name = data.draw(st.sampled_from([name for name in names if name in BAD] + ["ARGV"]), label="argument")
        if name == "ARGV":
            argv = data.draw(st.sampled_from([argv[:3], [*argv, b"more"], []]), label="ARGV")
        else:
            argv[names.index(name)] = data.draw(st.sampled_from(BAD[name]), label=name)
        self.step(Operation(script, self.trial.now_ms, argv=tuple(argv)))

    # Time

    @rule(nearest=st.integers(0, 2), offset_ms=st.sampled_from([1, 0, -1]))
    def wait_for_deadline(self, nearest: int, offset_ms: int) -> None:
        """To the millisecond before, of or after the end of a lease, a park, or the score of an entry."""
        if not self.setting.boundaries:
            self.wait(500)
            return
        state = self.trial.state(self.trial.prefixes[0])
        ends = {lock.deadline_ms for lock in state.locks.values() if lock.deadline_ms is not None}
        ends |= {score for tier in state.ready for score in tier.values()}
        coming = sorted(end + offset_ms for end in ends if end + offset_ms > self.trial.now_ms)
        if coming:
            self._wait(coming[nearest % len(coming)])

    @rule(ms=st.sampled_from([1, 50, 31_000]))
    def wait(self, ms: int) -> None:
        self._wait(self.trial.now_ms + ms)

    @rule(ms=st.sampled_from([1, 40_000]))
    def step_back(self, ms: int) -> None:
        """The server's clock is set back."""
        if self.setting.boundaries:
            self._wait(max(SMALL_MS, self.trial.now_ms - ms))

    def _wait(self, until_ms: int) -> None:
        self.step(Operation("wait", until_ms))

    # What others do to the keys

    @rule(
        op=st.sampled_from(["drop-prio", "drop-list", "break-list", "persist-lock", "drop-lock", "break-lock"]),
        group=few_groups,
    )
    def foreign(self, op: str, group: bytes) -> None:
        self.do(op, prefix=self.trial.prefixes[0], group=group)

    @rule(group=few_groups, value=st.sampled_from([b"2.5", b"", b"5", b"-0", b"04", b"1\n"]))
    def spoil_prio(self, group: bytes, value: bytes) -> None:
        self.do("set-prio", prefix=self.trial.prefixes[0], group=group, value=value)

    @rule(group=few_groups, tier=st.integers(0, 4), ahead_ms=st.sampled_from([None, 0, 1, -1, 5_000, -5_000]))
    def move_entry(self, group: bytes, tier: int, ahead_ms: int | None) -> None:
        """An entry is lost, or put at another score or into another tier."""
        if ahead_ms is None:
            self.do("drop-entry", prefix=self.trial.prefixes[0], group=group, tier=tier)
        else:
            score_ms = max(0, self.trial.now_ms + ahead_ms)
            self.do("set-entry", prefix=self.trial.prefixes[0], group=group, tier=tier, score_ms=score_ms)

    @precondition(lambda self: not self.crowded)
    @rule(
        size=st.sampled_from([2, 9, 1]),
        tier=st.sampled_from([0, 4, 2]),
        due=st.booleans(),
        visibility_ms=st.sampled_from([1_000, 0]),
        messages=st.sampled_from([1, 0]),
    )
    def crowd(self, size: int, tier: int, due: bool, visibility_ms: int, messages: int) -> None:
        """Many groups at once: leased by workers whose clocks are behind, free, or with their lists lost."""
        self._crowd(size, tier, due, visibility_ms, messages)

    @rule(
        size=st.sampled_from([2, 3, 9]),
        tier=st.sampled_from([0, 4]),
        candidates=st.sampled_from([1, 2]),
        visibility_ms=st.sampled_from([1_000, 0]),
        messages=st.sampled_from([1, 0]),
    )
    def claim_behind_crowd(self, size: int, tier: int, candidates: int, visibility_ms: int, messages: int) -> None:
        """A claim that has to find its way past them, and then they are gone."""
        self._crowd(size, tier, True, visibility_ms, messages)
        self.claim(1_000, candidates, 0, None, 0)
        self._disperse(size, tier)

    @rule(size=st.sampled_from([3, 20]), lower=st.integers(0, 1), candidates=st.sampled_from([1, 1, 2]), skew_ms=skews)
    def claim_behind_crowds(self, size: int, lower: int, candidates: int, skew_ms: int | None) -> None:
        """A claim whose way through one tier leaves little for the next."""
        for tier in (lower, lower + 2):
            self._crowd(size, tier, True, 1_000, 1)
        self.claim(1_000, candidates, 0, skew_ms, 0)
        for tier in (lower, lower + 2):
            self._disperse(size, tier)

    def _disperse(self, size: int, tier: int) -> None:
        self.do("disperse", prefix=self.trial.prefixes[0], size=size, tier=tier)

    def _crowd(self, size: int, tier: int, due: bool, visibility_ms: int, messages: int) -> None:
        self.crowded = True
        args: dict[str, Value] = {"size": size, "tier": tier, "visibility_ms": visibility_ms, "messages": messages}
        score_ms = max(0, self.trial.now_ms - 500) if due else 0
        self.do("crowd", prefix=self.trial.prefixes[0], **args, score_ms=score_ms)


def machine(setting: Setting) -> Callable[[], QueueMachine]:
    """A factory of machines, as ``run_state_machine_as_test`` takes it."""
    return lambda: QueueMachine(setting)
