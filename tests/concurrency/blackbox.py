"""The second checker: from what the clients saw alone, a group at a time.

It looks for one order of a group's calls, each at an instant between its call and its answer, in which a queue of the
spec gives these replies: one lease at a time, first in first out, a message gone with the first accepted ack, and a
settlement accepted as long as its lease lasts and not after. A call whose answer is unknown may have happened at any
instant after it was made, or not at all: both are tried. Leases nobody knows of (an unknown claim) explain nothing that
their end does not, and are left out; so are claims that were answered nil.

Sound for good queues, whatever the clocks do within TOLERANCE_NS: what it rejects, no order explains.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from model.notation import quoted, write, write_operation
from model.operation import Ok, Operation
from tests.concurrency.history import FOREVER_NS, History, Record
from tests.concurrency.verdict import ACCEPTED, REJECTED, UNKNOWN, Verdict

MS = 1_000_000
TOLERANCE_NS = 5 * MS
"""How far the server's clock and that of the clients may have moved apart within a lease, and what rounding adds."""
BUDGET = 300_000
"""Orders that are tried of one group; beyond that it cannot be told."""


@dataclass(frozen=True, slots=True)
class Span:
    """An instant that is known from its first to its last nanosecond."""

    first: int
    last: int


NEVER = Span(-FOREVER_NS, -FOREVER_NS)


@dataclass(frozen=True, slots=True)
class Group:
    """A group between two calls."""

    at_ns: int
    """Nothing that is still to come happened before."""
    published: int = 0
    stored: tuple[bytes, ...] = ()
    holder: bytes = b""
    ends: Span = NEVER
    parked: Span = NEVER

    def holds(self, token: bytes, when: Span) -> bool | None:
        """Whether the token holds the lease; None if it may and may not."""
        if self.holder != token or when.first > self.ends.last + TOLERANCE_NS:
            return False
        return True if when.last < self.ends.first - TOLERANCE_NS else None


def check(history: History, *, tells_lengths: bool = True) -> Verdict:
    """Judges the history. It has to end with a drain: claims and acks until the last claim answers nil."""
    last = max(history.records, key=lambda record: record.invoked_ns, default=None)
    if last is None or last.operation.op != "claim" or last.reply != Ok(None):
        return Verdict(
            UNKNOWN, "the history does not end with a claim that finds nothing, so what is left is not known"
        )
    groups: dict[bytes, list[Record]] = defaultdict(list)
    delivered = Counter(record.delivery.payload for record in history.records if record.delivery is not None)
    for record in history.records:
        group = record.delivery.group if record.delivery is not None else record.operation.args.get("group")
        stored = record.operation.args.get("payload")
        never_seen = record.operation.op == "publish" and record.reply is None and stored not in delivered
        if isinstance(group, bytes) and not never_seen:
            groups[group].append(record)
    tried = 0
    unknown = ""
    for group, records in sorted(groups.items()):
        search = Search(sorted(records, key=lambda record: record.invoked_ns), tells_lengths)
        found = search.run()
        tried += search.tried
        if found is False:
            return Verdict(REJECTED, f"no order explains what was seen of {quoted(group)}:\n{search.why}", group)
        if found is None:
            unknown = f"{quoted(group)}: not decided after {BUDGET:,} orders"
    return Verdict(UNKNOWN, unknown) if unknown else Verdict(ACCEPTED, f"{len(groups)} groups, {tried:,} steps tried")


class Search:
    """The orders of one group's calls, depth first, those that were answered first tried first."""

    def __init__(self, records: Sequence[Record], tells_lengths: bool) -> None:
        self._records = records
        self._tells_lengths = tells_lengths
        self._must = sum(1 << i for i, record in enumerate(records) if self._is_certain(record))
        self._order = self._published()
        self._deepest = (-1, 0, Group(0))
        self.tried = 0

    def _published(self) -> list[bytes]:
        """The payloads in the only order in which they can have been published: that in which they were first seen.

        Between two messages lies an ack, and it was called after the first had been delivered.
        """
        first: dict[object, int] = {}
        for record in self._records:
            if record.delivery is not None:
                payload = record.delivery.payload
                first[payload] = min(record.completed_ns, first.get(payload, FOREVER_NS))
        payloads = [record.operation.args["payload"] for record in self._records if record.operation.op == "publish"]
        return sorted((p for p in payloads if isinstance(p, bytes)), key=lambda p: first.get(p, FOREVER_NS))

    @staticmethod
    def _is_certain(record: Record) -> bool:
        """Whether it has happened: it was answered, or its message was seen later."""
        return record.reply is not None or record.operation.op == "publish"

    def run(self) -> bool | None:
        """Whether there is an order; None if the budget was used up."""
        seen: set[tuple[int, Group]] = set()
        stack = [(0, Group(0))]
        while stack:
            done, group = stack.pop()
            if done & self._must == self._must and not group.stored:
                return True
            if (done, group) in seen:
                continue
            seen.add((done, group))
            self.tried += 1
            if self.tried > BUDGET:
                return None
            depth = done.bit_count()
            if depth > self._deepest[0]:
                self._deepest = depth, done, group
            found = [(done | 1 << number, after) for number, after in self._next(done, group)]
            stack += reversed(found)
        return False

    def _next(self, done: int, group: Group) -> Iterator[tuple[int, Group]]:
        for number, record, when in self._open(done, group):
            for after in self._after(record, group, when):
                yield number, after

    def _open(self, done: int, group: Group) -> list[tuple[int, Record, Span]]:
        """The calls that can come next, each with the time in which it can have happened."""
        first_answer, found = FOREVER_NS, []
        for number, record in enumerate(self._records):
            if record.invoked_ns > first_answer:
                break
            if not done >> number & 1:
                found.append((number, record))
                first_answer = min(first_answer, record.completed_ns)
        found.sort(key=lambda each: each[1].completed_ns)
        return [
            (number, record, Span(max(group.at_ns, record.invoked_ns), min(record.completed_ns, first_answer)))
            for number, record in found
        ]

    def _after(self, record: Record, group: Group, when: Span) -> Iterator[Group]:
        """The states that the call can lead to."""
        operation, group = record.operation, replace(group, at_ns=when.first)
        if operation.op == "publish":
            payload = operation.args["payload"]
            assert isinstance(payload, bytes)
            stored = (*group.stored, payload)
            told = record.reply is None or not self._tells_lengths or record.reply == Ok(len(stored))
            if told and self._order[group.published] == payload:
                yield replace(group, published=group.published + 1, stored=stored)
        elif operation.op == "claim":
            yield from self._claimed(record, group, when)
        else:
            token = operation.args["token"]
            assert isinstance(token, bytes)
            holds = group.holds(token, when)
            if record.reply in (Ok(1), None) and holds is not False:
                yield self._settled(operation, group, when)
            if record.reply == Ok(0) and holds is not True:
                late = group.holder == token
                yield replace(group, at_ns=max(when.first, group.ends.first - TOLERANCE_NS)) if late else group

    def _claimed(self, record: Record, group: Group, when: Span) -> Iterator[Group]:
        free = max(group.ends.first if group.holder else NEVER.first, group.parked.first) - TOLERANCE_NS
        delivery = record.delivery
        if delivery is None or free > when.last or group.stored[:1] != (delivery.payload,):
            return
        first = max(when.first, free)
        ends = _later(Span(first, when.last), record.operation, "visibility_ms")
        yield replace(group, at_ns=first, holder=record.token, ends=ends, parked=NEVER)

    def _settled(self, operation: Operation, group: Group, when: Span) -> Group:
        when = Span(when.first, min(when.last, group.ends.last + TOLERANCE_NS))
        if operation.op == "extend":
            return replace(group, ends=_later(when, operation, "visibility_ms"))
        stored = group.stored[1:] if operation.op == "ack" else group.stored
        parks = operation.op == "nack" and operation["delay_ms"]
        parked = _later(when, operation, "delay_ms") if parks else NEVER
        return replace(group, stored=stored, holder=b"", ends=NEVER, parked=parked)

    @property
    def why(self) -> str:
        """Where the best order ends: the state there, and the calls that could have come next."""
        _, done, group = self._deepest
        held = f"held by {quoted(group.holder)} {_about(group.ends, group)}" if group.holder else "free"
        if group.parked != NEVER:
            held = f"parked {_about(group.parked, group)}"
        head = ", ".join(map(quoted, group.stored[:2])) or "nothing"
        lines = [f"  it holds {len(group.stored)} messages, the first {head}; it is {held}; then came one of"]
        for _, record, _ in self._open(done, group):
            start = (record.invoked_ns - group.at_ns) // MS
            told = write(record.operation, record.reply) if record.reply is not None else unknown(record)
            lines.append(f"    {start:+} ms, lane {record.lane}: {told.split(maxsplit=1)[1]}")
        if len(lines) == 1:
            lines = [
                f"  every call is explained, and {len(group.stored)} messages are left that no claim finds: {head}"
            ]
        return "\n".join(lines)


def unknown(record: Record) -> str:
    """The call without an answer, as it stands in a trace."""
    return f"{write_operation(record.operation)} -> unknown"


def _later(when: Span, operation: Operation, name: str) -> Span:
    ms = operation[name]
    assert isinstance(ms, int)
    return Span(when.first + ms * MS, when.last + ms * MS)


def _about(end: Span, group: Group) -> str:
    return f"for {(end.first - group.at_ns) // MS} to {(end.last - group.at_ns) // MS} ms more"
