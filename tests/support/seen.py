"""What can be recognised in a divergence: the words in which ``rules.py`` says what it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from model.operation import ARGV, Delivery, Error, Ok, Operation, Reply
from model.state import PARKED, State


@dataclass(frozen=True)
class Seen:
    """A divergence: what was asked, in which state, what should have come of it and what did."""

    operation: Operation
    before: State
    expected: Reply
    got: Reply
    want: State
    have: State
    others_differ: bool
    situations: frozenset[str]

    @property
    def argv(self) -> Mapping[str, bytes]:
        return dict(zip(ARGV.get(self.operation.op, ()), self.operation.to_argv(), strict=False))

    @property
    def group(self) -> bytes:
        """The group it is about: the one named, or the one that should have been claimed, or the one that was."""
        if "group" in self.argv:
            return self.argv["group"]
        return (delivery(self.expected) or delivery(self.got) or Delivery(b"", b"")).group

    def score(self, state: State) -> list[int | None]:
        return [tier.get(self.group) for tier in state.ready]

    def lock(self, state: State) -> tuple[bytes | None, int | None] | None:
        lock = state.lock(self.group)
        return None if lock is None else (lock.value, lock.deadline_ms)


def delivery(reply: Reply) -> Delivery | None:
    """What a claim delivered, if it did."""
    return reply.value if isinstance(reply, Ok) and isinstance(reply.value, Delivery) else None


SETTLING = ("ack", "nack", "extend")


def is_badarg(reply: Reply) -> bool:
    """The reply refuses an argument."""
    return isinstance(reply, Error) and reply.code == "REDISQ_BADARG"


def bad_names(s: Seen) -> str:
    """The arguments that should have been refused."""
    return ", ".join(s.expected.arguments) if isinstance(s.expected, Error) else ""


def reached(situation: str) -> Callable[[Seen], bool]:
    """The step reached a situation of ``reached.py``."""
    return lambda s: situation in s.situations


def missed(s: Seen) -> bool:
    """There was a group to claim and none was claimed."""
    return delivery(s.expected) is not None and delivery(s.got) is None


def other_group(s: Seen) -> bool:
    """Another group than the one that is next was claimed."""
    want, have = delivery(s.expected), delivery(s.got)
    return want is not None and have is not None and want.group != have.group


def same_score(s: Seen) -> bool:
    """The group that was claimed and the one that is next have the same score."""
    want, have = delivery(s.expected), delivery(s.got)
    if want is None or have is None:
        return False
    scores = [[tier[d.group] for tier in s.before.ready if d.group in tier] for d in (want, have)]
    return bool(scores[0]) and scores[0] == scores[1]


def wrong_tier(s: Seen) -> bool:
    """A group of a tier below min_priority was claimed."""
    have = delivery(s.got)
    lowest = s.argv.get("min_priority", b"0")[:2]
    return have is not None and not any(have.group in t for t in s.before.ready[min(max(int(lowest), 0), 4) :])


def taken(s: Seen) -> bool:
    """A group was claimed that is locked."""
    have = delivery(s.got)
    lock = s.before.lock(have.group) if have else None
    return lock is not None and lock.deadline_ms is not None


def taken_parked(s: Seen) -> bool:
    """A group was claimed that is parked."""
    have = delivery(s.got)
    lock = s.before.lock(have.group) if have else None
    return taken(s) and lock is not None and lock.value == PARKED


def on_boundary(s: Seen) -> bool:
    """It is the millisecond of a deadline, or the one after it."""
    have, want = delivery(s.got), delivery(s.expected)
    lock = s.before.lock(have.group) if have else None
    if lock is not None and lock.deadline_ms == s.before.now_ms:
        return True
    dead = s.before.locks.get(want.group) if want else None
    return dead is not None and have is None and dead.deadline_ms == s.before.now_ms - 1


def not_due(s: Seen) -> bool:
    """There was no group to claim and one was claimed."""
    have = delivery(s.got)
    return have is not None and delivery(s.expected) is None


def others_moved(s: Seen) -> bool:
    """Entries of groups that were not claimed are not where they should be."""
    if s.operation.op != "claim":
        return False
    return any(
        want.get(group) != have.get(group)
        for want, have in zip(s.want.ready, s.have.ready, strict=True)
        for group in want.keys() | have.keys()
        if group != s.group
    )


def fifo_broken(s: Seen) -> bool:
    """The right messages are in the wrong order."""
    want, have = s.want.messages(s.group), s.have.messages(s.group)
    return want is not None and have is not None and want != have and sorted(want) == sorted(have)


def payload_differs(s: Seen) -> bool:
    """The right group came with another message."""
    want, have = delivery(s.expected), delivery(s.got)
    return want is not None and have is not None and want.group == have.group and want.payload != have.payload


def in_op(*ops: str) -> Callable[[Seen], bool]:
    """It is one of these operations."""
    return lambda s: s.operation.op in ops


def every(*tests: Callable[[Seen], object]) -> Callable[[Seen], bool]:
    """All of these."""
    return lambda s: all(test(s) for test in tests)


def fence_open(s: Seen) -> bool:
    """A settlement that should have been refused."""
    return s.expected == Ok(0) and s.operation.op in SETTLING


def replies_differ(s: Seen) -> bool:
    """Two replies that are no errors differ."""
    return not isinstance(s.expected, Error) and s.expected != s.got
