"""The replay: line after line, until a step comes that the model does not allow."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from model import invariants
from model.operation import Operation, Reply
from model.state import State
from tests.support.replay.commands import alive
from tests.support.replay.keys import READS, Change, Keys
from tests.support.replay.monitor import Entry
from tests.support.replay.rules import Rules
from tests.support.replay.trace import Told
from tests.support.replay.units import Unit, Units
from tests.support.replay.wire import MOST_GROUPS, REFUSED, Outcome, disagreement, operation, outcomes

LONGEST_TRACE = 40
SNAPSHOT = "snapshot"
"""The source of lines that say what the key space held when the replay began."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The first step that cannot be."""

    group: bytes
    what: tuple[str, ...]
    trace: tuple[str, ...]
    """The steps of the group, in the notation of the spec; the last is the one."""
    number: int
    """Which step it was, counted from 1."""

    def __str__(self) -> str:
        marked = [*(f"  {line}" for line in self.trace[:-1]), f"> {self.trace[-1]}"]
        return "\n".join([f"step {self.number:,}: {self.what[0]}", *self.what[1:], "", *marked])


@dataclass(frozen=True, slots=True)
class Step:
    """A call of a known script, as the server ran it."""

    unit: Unit
    operation: Operation
    replies: tuple[Reply, ...]
    """What the model may have answered; empty where it was not asked, or the call was refused midway."""


class Replay:
    """Takes the lines of MONITOR and judges each step on the keys of one prefix.

    ``scripts`` are those that are known, by SHA-1: they are run through the model, all other steps are held against the
    rules. ``on_step`` is called with each run of a known script.
    """

    def __init__(
        self,
        prefix: bytes,
        scripts: Mapping[str, str],
        db: int = 0,
        on_step: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self.prefix = prefix
        self.keys = Keys(prefix)
        self.counts: Counter[str] = Counter()
        """How many lines there were, and what was not judged."""
        self.steps = 0
        """How many steps on the queue were seen."""
        self.finding: Finding | None = None
        self.not_judged: set[bytes] = set()
        """Groups that are not yet, or no longer, known: what happens to them is not judged."""
        self._scripts = scripts
        self.db = db
        self._on_step = on_step
        self._units = Units()
        self._rules = Rules(self.keys)
        self._unsure: set[bytes] = set()
        self._wrong_before: set[bytes] = set()
        self._traces: dict[bytes, deque[Told]] = defaultdict(lambda: deque(maxlen=LONGEST_TRACE))

    def add(self, entry: Entry) -> Finding | None:
        """Takes a line; what is wrong with the step that ended before it."""
        self.counts["lines"] += 1
        unit = self._units.add(entry)
        return self._judge(unit) if unit is not None else None

    def end(self, *, cut: bool = False) -> Finding | None:
        """Judges the last step: no line has come for a while. ``cut``: nor will one, and a script may not be whole."""
        unit = self._units.end()
        return self._judge(unit) if unit is not None and not (cut and unit.is_script) else None

    @property
    def now_us(self) -> int:
        """The server's clock at the last line."""
        return self._units.last_us

    @property
    def waits(self) -> bool:
        """Whether a step on the queue may not be whole yet."""
        return self._units.open is not None and self._units.open.first.name != b"ECHO"

    def learn(self, group: bytes, state: State) -> None:
        """The keys of a group were read just now, by another connection. What is wrong by now is none of ours."""
        self.keys.put(group, state)
        self.not_judged.discard(group)
        if invariants.of_state(state.at(self.now_us // 1000)):
            self._wrong_before.add(group)

    def _judge(self, unit: Unit) -> Finding | None:
        if self.finding is not None or unit.first.db != self.db:
            return None
        if unit.first.source == SNAPSHOT:
            for _ in self.keys.apply(unit.first.words, unit.span, SNAPSHOT):
                pass
            return None
        op = self._scripts.get(unit.sha, "")
        if op and unit.argv[:1] != (self.prefix,):
            op = ""
        possible = self._possible(op, unit)
        before, problems = self._changes(unit)
        unknown = self.not_judged | self._unsure | self._wrong_before
        judged = [(group, what) for group, what in problems if group not in unknown]
        replies: tuple[Reply, ...] = ()
        rows: list[str] = []
        if possible and not before.keys() & (self.not_judged | self._unsure):
            fitting, rows = self._fitting(possible, before, unit)
            replies = tuple(dict.fromkeys(outcome.reply for outcome in fitting))
            if fitting:
                judged = []
                self._locks_that_ended(fitting[0])
            elif rows[:1] == [REFUSED]:
                self.counts["scripts refused midway"] += 1
                rows = []
        self._settle(before, unit)
        if not (before or op or judged or rows):
            return None
        self.steps += 1
        if op and (unit.nested or possible):
            call = operation(op, unit.argv, unit.first.at_us // 1000)
            self._on_step(Step(unit, call, replies))
        else:
            call = None
        wrong = bool(judged or rows)
        self._tell(unit, call, replies[0] if replies else None, before, as_it_is=wrong)
        if wrong:
            group = judged[0][0] if judged else min(before, default=b"")
            what = [text for whose, text in judged if whose == group]
            if rows:
                what += [f"MODEL {op}: it did otherwise than the model", *(f"  {row}" for row in rows)]
            trace = tuple(line for told in self._traces[group] for line in told.lines())
            self.finding = Finding(group, tuple(what), trace, self.steps)
        return self.finding

    def _possible(self, op: str, unit: Unit) -> list[Outcome]:
        """What the model allows, worked out before the step has changed the keys."""
        if not op or (not unit.nested and unit.first.name != b"EVAL"):
            return []  # unknown, or not run: NOSCRIPT
        if op == "claim" and (len(self.keys.groups) > MOST_GROUPS or self.not_judged or self._unsure):
            self.counts["claims held against the rules alone"] += 1
            return []
        return list(outcomes(op, unit, self.keys))

    def _changes(self, unit: Unit) -> tuple[dict[bytes, State], list[tuple[bytes, str]]]:
        """Does what the unit did: the groups it changed as they were before, and what the rules say."""
        before: dict[bytes, State] = {}
        problems: list[tuple[bytes, str]] = []
        connection = self._rules.of(unit.first.source)
        if not unit.is_script:
            self._rules.note(unit.first)
        for entry, span in unit.spans():
            if entry.name in READS:
                continue
            changes = list(self.keys.apply(entry.words, span, unit.first.source))
            if any(change.kind == "unknown" for change in changes):
                self.counts[f"not understood: {entry.name.decode(errors='replace')}"] += 1
            for change in changes:
                before.setdefault(change.group, change.before)
                self._note_unknown(change)
                problems += [(change.group, what) for what in self._rules.judge(change, unit, span)]
        ended = set(before) if unit.is_script else set()
        if connection.in_transaction:
            connection.touched |= set(before)
            ended = set()
        elif unit.first.name == b"EXEC":
            ended, connection.touched = connection.touched, set()
        problems += [(group, what) for group in sorted(ended) for what in self._rules.at_end(group, unit.span)]
        return before, problems

    def _note_unknown(self, change: Change) -> None:
        if change.kind == "unknown":
            self.not_judged.add(change.group)
        elif change.kind == "unsure":
            self.counts["locks taken or not in the millisecond of their deadline"] += 1
            self._unsure.add(change.group)
        elif change.kind == "lock":
            self._unsure.discard(change.group)

    def _fitting(
        self, possible: list[Outcome], before: Mapping[bytes, State], unit: Unit
    ) -> tuple[list[Outcome], list[str]]:
        """The outcomes that agree with the keys; if none does, where the likeliest does not."""
        found = [(outcome, disagreement(outcome, before, self.keys, unit)) for outcome in possible]
        fitting = [outcome for outcome, rows in found if not rows]
        refused = [rows for _, rows in found if rows[:1] == [REFUSED]]
        return fitting, [] if fitting else (refused or [found[0][1]])[0]

    def _locks_that_ended(self, outcome: Outcome) -> None:
        for group in set(outcome.gone) - outcome.states.keys():
            self.keys.put(group, replace(self.keys.of(group), locks={}))

    def _settle(self, before: Mapping[bytes, State], unit: Unit) -> None:
        """Forgets locks that have ended, and that a group was wrong before, once it is as it should be."""
        for group in before:
            state = self.keys.of(group)
            if group in self._wrong_before and not invariants.of_state(state.at(unit.span.last_ms)):
                self._wrong_before.discard(group)
            if state.locks and alive(state, group, unit.span) is False:
                self.keys.put(group, replace(state, locks={}))

    def _tell(
        self, unit: Unit, call: Operation | None, reply: Reply | None, before: Mapping[bytes, State], *, as_it_is: bool
    ) -> None:
        named = call.args.get("group") if call is not None else None
        for group in before.keys() | ({named} if isinstance(named, bytes) else set()):
            now = self.keys.of(group)
            self._traces[group].append(Told(unit, call, reply, group, before.get(group, now), now, as_it_is))
        if len(self._traces) > MOST_GROUPS:
            for group in before.keys() - self.keys.groups.keys():
                del self._traces[group]
