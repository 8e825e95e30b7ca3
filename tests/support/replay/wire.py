"""Calls of scripts that are known: run through the model from the keys as they were, and compared.

The clock that a script saw is among the arguments of its commands (a bound, a score); where it is not, it does not
matter. Whether a lock had ended in the millisecond of its deadline, the commands show: both are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from model.notation import difference
from model.operation import ARGUMENTS, ARGV, BYTES, MAY_BE_NULL, Delivery, Ok, Operation, Reply, Value
from model.run import SCRIPTS
from model.state import State
from tests.support.replay.commands import Held, alive
from tests.support.replay.keys import Keys, merged, of_group
from tests.support.replay.units import Span, Unit

MOST_GROUPS = 2_000
"""A claim is held against the model as long as there are no more groups; beyond that by the rules alone."""
MOST_UNDECIDED = 6
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model makes of a call, under one reading of the clock and of the locks that end just then."""

    reply: Reply
    states: Mapping[bytes, State]
    """The groups that it changes, after it."""
    gone: tuple[bytes, ...]
    """The locks that had ended."""
    now_ms: int


def operation(op: str, argv: tuple[bytes, ...], time_ms: int) -> Operation:
    """The call as an operation: by its arguments' names, or with a raw ARGV where it is not of the form."""
    names = ARGUMENTS[op]
    values = (*argv, b"0") if op == "publish" and len(argv) == len(names) - 1 else argv
    raw = Operation(op, time_ms, argv=argv)
    if len(values) != len(names):
        return raw
    args: dict[str, Value] = {}
    for name, value in zip(names, values, strict=True):
        args[name] = value
        if name not in BYTES:
            if name in MAY_BE_NULL and not value:
                args[name] = None
            elif value.removeprefix(b"-").isdigit() and b"%d" % int(value) == value:
                args[name] = int(value)
            else:
                return raw
    return Operation(op, time_ms, args)


def outcomes(op: str, unit: Unit, keys: Keys) -> Iterator[Outcome]:
    """All that the model allows the call to do, the likeliest first."""
    argv, span = unit.argv, unit.span
    one = op != "claim" and len(argv) > 1
    before = keys.of(argv[1]) if one else keys.whole()
    undecided = [group for group in before.locks if alive(before, group, span) is None][:MOST_UNDECIDED]
    for now_ms in _clocks(op, argv, unit, span):
        locks = {g: lock for g, lock in before.locks.items() if g in undecided or alive(before, g, span)}
        for ended in product((False, True), repeat=len(undecided)):
            gone = tuple(group for group, end in zip(undecided, ended, strict=True) if end)
            left = {group: _at(lock, now_ms) for group, lock in locks.items() if group not in gone}
            start = replace(before, now_ms=now_ms, locks=left)
            after, reply = SCRIPTS[op](start, argv)
            changed = {argv[1]} if one else _changed(start, after)
            yield Outcome(reply, {group: of_group(after, group) for group in changed}, gone, now_ms)


def _clocks(op: str, argv: tuple[bytes, ...], unit: Unit, span: Span) -> list[int]:
    """The readings of the clock that fit the commands; if none is there, one by the end of the first command."""
    names = ARGV[op]
    added = {int(value) for name, value in zip(names, argv, strict=False) if name in ("px", "delay") and _digits(value)}
    found = dict.fromkeys(
        number - ahead
        for entry in unit.nested
        for word in entry.words[2:]
        if _digits(number_text := word.removeprefix(b"("))
        for number in [int(number_text)]
        for ahead in (0, *added)
        if span.first_ms <= number - ahead <= span.last_ms
    )
    return list(found) or [next((within.last_ms for _, within in unit.spans()), span.last_ms)]


def _digits(text: bytes) -> bool:
    return text.isdigit() and len(text) < 17


def _at(lock: object, now_ms: int) -> Held:
    """A lock that lives now, whatever the latest millisecond of its deadline."""
    assert isinstance(lock, Held)
    return lock if lock.deadline_ms is None else replace(lock, deadline_ms=max(lock.deadline_ms, now_ms))


def _changed(before: State, after: State) -> set[bytes]:
    groups: set[bytes] = set()
    pairs = [(before.queues, after.queues), (before.locks, after.locks), (before.prio, after.prio)]
    for old, new in [*pairs, *zip(before.ready, after.ready, strict=True)]:
        if old is not new:
            groups |= {group for group in old.keys() | new.keys() if old.get(group) != new.get(group)}
    return groups


def disagreement(outcome: Outcome, before: Mapping[bytes, State], keys: Keys, unit: Unit) -> list[str]:
    """The keys that are otherwise than the model has them, a line each; ``before`` are the groups that were changed.

    The first line is REFUSED where the call has only left undone what it should do: a server that is full, or lacks a
    right, ends a script so.
    """
    groups = sorted(outcome.states.keys() | before.keys())
    want = merged(_as_seen(outcome, g, before.get(g, keys.of(g)), keys, unit) for g in groups)
    have = merged(keys.of(group) for group in groups)
    if want == have or not (rows := difference(want.at(outcome.now_ms), have.at(outcome.now_ms))):
        return []
    old = merged(before.get(group, keys.of(group)) for group in groups)
    undone = set(rows) <= set(difference(want.at(outcome.now_ms), old.at(outcome.now_ms)))
    return [REFUSED, *rows] if undone else rows


def _as_seen(outcome: Outcome, group: bytes, before: State, keys: Keys, unit: Unit) -> State:
    """The expected state, with deadlines as the lines have them where that is as exact as is known."""
    want, have, span = outcome.states.get(group, before), keys.of(group), unit.span
    lock, seen = want.locks.get(group), have.locks.get(group)
    if group in outcome.gone and group not in outcome.states:
        want = replace(want, locks={})
    if lock is not None and isinstance(seen, Held) and seen.value == lock.value and _near(lock.deadline_ms, seen, 0):
        want = replace(want, locks={group: seen})
    match outcome.reply:
        case Ok(Delivery(delivered, _)) if delivered == group:
            return want
    if isinstance(seen, Held):
        # A repair: the score is the lock's end plus 1, as far as the script's clock and the lock's were the same.
        off_ms = span.last_ms - span.first_ms
        for tier, entries in enumerate(want.ready):
            score = have.ready[tier].get(group, -1)
            if entries.get(group) != before.ready[tier].get(group) and _near(score - 1, seen, off_ms):
                want = want.zadd(tier, score, group)
    return want


def _near(deadline_ms: int | None, seen: Held, off_ms: int) -> bool:
    if deadline_ms is None or seen.deadline_ms is None or seen.earliest_ms is None:
        return deadline_ms == seen.deadline_ms
    return seen.earliest_ms - off_ms <= deadline_ms <= seen.deadline_ms + off_ms
