"""The kinds of findings of an audit: what each means, why it matters, and what repair does about it."""

from __future__ import annotations

from typing import NamedTuple

from redisq.ops.finding import Finding, Severity


class Kind(NamedTuple):
    """`what` may name the detail that the script gave. `heals`: what repair does; empty: it leaves it to you."""

    severity: Severity
    what: str
    why: str
    heals: str
    fix: str = "run the audit with --repair"


KINDS = {
    "no-entry": Kind(
        Severity.ERROR,
        "{detail} messages, and no entry in a tier",
        "no claim can reach them until the next publish to the group",
        "the entry is put back, due now or when the lease ends",
    ),
    "stale-entry": Kind(
        Severity.WARNING,
        "an entry in tier {detail}, and no messages",
        "the next claim that meets it removes it; until then it is in the way",
        "entry and field are removed",
    ),
    "two-tiers": Kind(
        Severity.ERROR,
        "entries in the tiers {detail}",
        "a claim by the wrong one hides that the group was drained, or finds it early",
        "the entry of its priority is kept, the others are removed",
    ),
    "wrong-tier": Kind(
        Severity.ERROR,
        "its entry is in tier {detail}, its priority is another",
        "claims by min_priority miss it, and the next publish makes a second entry",
        "the entry moves to the tier of its priority",
    ),
    "no-field": Kind(
        Severity.WARNING,
        "messages, and no valid priority (it is {detail!r})",
        "a settlement takes the tier that knows the group; a group without one falls to tier 0",
        "the priority is written back from the tier of the entry",
    ),
    "lone-field": Kind(
        Severity.WARNING,
        "a priority ({detail!r}), and neither messages nor an entry",
        "the group's next message takes this priority instead of its own",
        "the field is removed",
    ),
    "lock-without-ttl": Kind(
        Severity.WARNING,
        "a lock that has no TTL",
        "a lease that ends by the score alone; without messages the key stays for ever",
        "it ends at the score of the entry; if that is over, or nothing is there, it is removed",
    ),
    "score-ahead": Kind(
        Severity.ERROR,
        "its score is {detail} ms beyond the end of any lease",
        "the group is not delivered until then: some client's clock ran ahead",
        "it is due now, or when its lock ends",
    ),
    "list-type": Kind(
        Severity.ERROR,
        "its list is a key of type {detail}",
        "publishes to the group fail, and claims pass it over",
        "the key is renamed to PREFIX:aside:TIME:q:GROUP; entry and field are removed",
    ),
    "lock-type": Kind(
        Severity.WARNING,
        "its lock is a key of type {detail}",
        "a settlement of the group fails; with a TTL it blocks the group like a lease",
        "the key is renamed to PREFIX:aside:TIME:lock:GROUP",
    ),
    "list-with-ttl": Kind(
        Severity.ERROR,
        "its list has a TTL",
        "the messages vanish when it ends",
        "the TTL is removed",
    ),
    "index-type": Kind(
        Severity.ERROR,
        "the key is of another type than the index needs",
        "operations fail with WRONGTYPE",
        "the key is renamed to PREFIX:aside:TIME:NAME; what it held is found again from lists and entries",
    ),
    "index-with-ttl": Kind(
        Severity.ERROR,
        "the key has a TTL",
        "a part of the index vanishes when it ends",
        "the TTL is removed",
    ),
    "collision": Kind(
        Severity.ERROR,
        "its keys are those of the queue {detail!r}",
        "the two queues read and delete each other's keys",
        "",
        "stop one of the two, drain it, and use another prefix; nothing of this group was touched",
    ),
    "set-aside": Kind(
        Severity.OK,
        "a key of a wrong type that a repair renamed",
        "nothing reads it",
        "",
        "look at it, then delete it",
    ),
    "foreign-key": Kind(
        Severity.WARNING,
        "a key under the prefix that no script makes",
        "another program uses the prefix, or a client that takes other priorities than 0 to 4 (ready:N)",
        "",
        "find out who writes it; nothing here reads it, and repair leaves it alone",
    ),
    "not-examined": Kind(
        Severity.ERROR,
        "it could not be looked at: {detail}",
        "what is wrong with it, if anything, is not known",
        "",
        "give the user the rights that the error names, or make room on a full server",
    ),
}


def of_kind(code: str, subject: str, detail: str, repair: bool) -> Finding:
    """The finding of that kind; healed if this was a repair and the kind can be."""
    kind = KINDS[code]
    healed = repair and bool(kind.heals)
    fix = f"done: {kind.heals}" if healed else f"{kind.fix}: {kind.heals}" if kind.heals else kind.fix
    return Finding(code, kind.severity, subject, kind.what.format(detail=detail), kind.why, fix, healed)
