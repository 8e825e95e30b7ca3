"""Says in words which promise a divergence breaks: for the author of a port, who sees this and no Python.

A table of rules, each with the divergences it recognises; the most telling ones come first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from model.operation import Error, Fault, Ok, Operation, Reply, Unsupported
from model.state import State
from tests.support.seen import (
    SETTLING,
    Seen,
    bad_names,
    every,
    fence_open,
    fifo_broken,
    in_op,
    is_badarg,
    missed,
    not_due,
    on_boundary,
    other_group,
    others_moved,
    payload_differs,
    reached,
    replies_differ,
    same_score,
    taken,
    taken_parked,
    wrong_tier,
)

Rule = tuple[str, str, Callable[[Seen], object]]

RULES: Sequence[Rule] = (
    ("PROTOCOL", "the reply is none that this operation may give", lambda s: isinstance(s.got, Fault | Unsupported)),
    (
        "E6",
        "a priority that is no integer is refused with REDISQ_BADARG before any write; stored under a "
        "tier of its own, the message is never delivered",
        every(lambda s: is_badarg(s.expected), lambda s: "priority" in bad_names(s)),
    ),
    (
        "E7",
        "an argument that is not of its form is refused with an error that begins REDISQ_BADARG and names "
        "it, before anything is written",
        lambda s: is_badarg(s.expected),
    ),
    ("ARGUMENTS", "these arguments are of their form and must be accepted", lambda s: is_badarg(s.got)),
    ("PREFIX", "an operation touches the keys of its own prefix and group, and no others", lambda s: s.others_differ),
    ("KEYS", "only the keys of the key space exist, and none but a lock has a TTL", lambda s: bool(s.have.strays)),
    # publish
    (
        "FIFO",
        "publish appends at the tail of the group's list (RPUSH): a group is first in, first out",
        every(in_op("publish"), fifo_broken),
    ),
    (
        "E16",
        "a group whose prio field is lost or spoilt stays in the tier that knows it; else it is in two "
        "tiers, and its messages run twice or never",
        every(
            reached("priority field lost or spoilt"),
            lambda s: s.score(s.want) != s.score(s.have) or s.want.prio != s.have.prio,
        ),
    ),
    (
        "E13",
        "a list of another type is an error of publish, and stores nothing",
        every(in_op("publish"), lambda s: isinstance(s.expected, Error)),
    ),
    (
        "NX",
        "publish must not move the entry of a group that has one (ZADD NX): a leased or parked group would look due",
        every(
            in_op("publish"),
            lambda s: any(b is not None and h != b for b, h in zip(s.score(s.before), s.score(s.have), strict=True)),
        ),
    ),
    (
        "E11",
        "a new group starts at the score publish is given, or at the server's clock when it is empty",
        every(
            in_op("publish"), lambda s: s.argv.get("score", b"0") != b"0", lambda s: s.score(s.want) != s.score(s.have)
        ),
    ),
    (
        "INDEX",
        "publish puts a new group into the tier of its clamped priority, at score 0 unless told "
        "otherwise, and a known group back where its entry is lost",
        every(in_op("publish"), lambda s: s.score(s.want) != s.score(s.have)),
    ),
    (
        "PRIORITY",
        "the first publish fixes a group's priority, clamped to 0..4, until the group drains",
        every(in_op("publish"), lambda s: s.want.prio != s.have.prio),
    ),
    (
        "STORE",
        "publish stores the payload byte for byte",
        every(in_op("publish"), lambda s: s.want.messages(s.group) != s.have.messages(s.group)),
    ),
    (
        "REPLY",
        "publish replies the length of the group's queue after the push",
        every(in_op("publish"), replies_differ),
    ),
    # claim
    (
        "E4",
        "the boundary: a lock lives through the millisecond of its deadline and is gone in the next; a "
        "group is due when its score <= now",
        every(in_op("claim"), on_boundary),
    ),
    ("PARKED", "a parked group is not claimable before its delay is over", every(in_op("claim"), taken_parked)),
    (
        "EXCLUSIVE",
        "one message in flight per group: a leased group is not claimable until its lease ends",
        every(in_op("claim"), taken),
    ),
    ("MIN-PRIORITY", "a claim with min_priority serves only tiers at or above it", every(in_op("claim"), wrong_tier)),
    (
        "E13",
        "a list or lock of another type takes its own group out of the index and no other: the rest flows",
        every(in_op("claim"), reached("key of another type in the window")),
    ),
    (
        "E14",
        "a due group whose lock has no TTL counts as free: its lease is over by its score",
        every(in_op("claim"), reached("lock without TTL in the window")),
    ),
    (
        "E3",
        "leased groups that look due must not hide a free one: the claim goes on to further pages of K, "
        "and a full page with nothing to serve is re-scored to the end of its locks (with the server's "
        "clock)",
        every(in_op("claim"), missed, reached("first page of the window all locked")),
    ),
    (
        "E12",
        "a stale entry is removed with its prio field, and the claim goes on to the groups behind it",
        every(in_op("claim"), reached("stale entry in the window")),
    ),
    (
        "E9",
        "of equal scores the lower tier wins, and within a tier the smaller group id in bytes",
        every(in_op("claim"), other_group, same_score),
    ),
    ("ORDER", "a claim serves the free due group of the lowest score", every(in_op("claim"), other_group)),
    ("DELIVERY", "a claim must return a group that is due and free when there is one", every(in_op("claim"), missed)),
    ("DUE", "a group is claimable only when its score is at most now", every(in_op("claim"), not_due)),
    (
        "FIFO",
        "a claim returns the oldest message of its group, byte for byte, and leaves it stored",
        every(in_op("claim"), payload_differs),
    ),
    (
        "E3",
        "a claim re-scores only locked entries of a full page that had nothing to serve, to the end of "
        "their locks, and only with the server's clock",
        every(in_op("claim"), others_moved),
    ),
    (
        "LEASE",
        "claim sets lock:{group} to the token with a TTL of px milliseconds: a lock without its TTL is a "
        "group that is stuck when its worker dies",
        every(in_op("claim"), lambda s: s.lock(s.want) != s.lock(s.have)),
    ),
    (
        "SCORE",
        "claim moves the group's score to now + px, so that it is due again when the lease ends",
        every(in_op("claim"), lambda s: s.score(s.want) != s.score(s.have)),
    ),
    (
        "CLAIM",
        "claim takes no message away: the head stays stored until it is acked",
        every(in_op("claim"), lambda s: s.want.queues != s.have.queues),
    ),
    # ack, nack, extend
    (
        "E2",
        "parking revokes the lease: the settled token no longer acks, nacks or extends",
        every(reached("settle with the token of a parked group"), fence_open),
    ),
    (
        "E1",
        "only the holder settles: a token whose lease has moved on changes nothing and is answered 0",
        every(reached("stale settle after the group was claimed again"), fence_open),
    ),
    (
        "FENCE",
        "only the holder of the group's lock settles: any other token is answered 0 and changes nothing",
        fence_open,
    ),
    (
        "HOLDER",
        "the holder of a live lease is answered 1",
        every(in_op(*SETTLING), lambda s: s.expected == Ok(1) and s.got != Ok(1)),
    ),
    (
        "E2",
        "parking stores `parked` in the lock, for the length of the delay",
        every(in_op("nack"), lambda s: s.lock(s.want) != s.lock(s.have)),
    ),
    (
        "FREE",
        "ack frees the group: its lock is deleted",
        every(in_op("ack"), lambda s: s.lock(s.want) != s.lock(s.have)),
    ),
    (
        "EXTEND",
        "extend moves the end of the lease to px from now, in the lock and in the score",
        every(in_op("extend"), lambda s: (s.lock(s.want), s.score(s.want)) != (s.lock(s.have), s.score(s.have))),
    ),
    (
        "POP",
        "ack removes exactly the delivered message, the oldest one",
        every(in_op("ack"), lambda s: s.want.messages(s.group) != s.have.messages(s.group)),
    ),
    (
        "FIFO",
        "nack and extend leave the messages as they are: a retry comes before the messages behind it",
        every(in_op("nack", "extend"), lambda s: s.want.queues != s.have.queues),
    ),
    (
        "DRAIN",
        "an ack of the last message leaves no key of the group: no entry, no prio field, no lock",
        every(in_op("ack"), lambda s: not s.want.messages(s.group)),
    ),
    (
        "ROUND-ROBIN",
        "after an ack with messages left the group is due at now, behind the groups that wait",
        every(in_op("ack"), lambda s: s.score(s.want) != s.score(s.have)),
    ),
    (
        "RETRY",
        "nack makes the group due at score 0, or at now + delay when it is parked",
        every(in_op("nack"), lambda s: s.score(s.want) != s.score(s.have)),
    ),
    ("E16", "a lost or spoilt prio field is written back", lambda s: s.want.prio != s.have.prio),
    ("FOREIGN", "the key space was not what the model holds", lambda s: not s.operation.is_script),
)


def explain(
    operation: Operation,
    before: State,
    expected: Reply,
    got: Reply,
    want: State,
    have: State,
    others_differ: bool,
    situations: frozenset[str],
) -> list[str]:
    """The rule a divergence breaks, as ``ID: sentence``; the first of the table that recognises it."""
    seen = Seen(operation, before, expected, got, want, have, others_differ, situations)
    return list(_explain(seen))[:1] or ["MODEL: reply and keys after an operation are those of the model"]


def _explain(seen: Seen) -> Iterator[str]:
    for name, sentence, recognises in RULES:
        if recognises(seen):
            yield f"{name}: {sentence}"
