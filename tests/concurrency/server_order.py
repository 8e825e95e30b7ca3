"""The first checker: the server's own order.

What MONITOR told is replayed through the model, step by step. Then the replies: each lane's calls are found again in
the steps of its connections, in order, and each reply must be the one that the model gives at that place. A call whose
answer is unknown may be there or not; one that a client repeated by itself is there twice, on two connections.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from model.notation import write_operation, write_reply
from model.operation import Ok
from tests.concurrency.history import History, Record
from tests.concurrency.verdict import ACCEPTED, REJECTED, UNKNOWN, Verdict
from tests.support.replay.monitor import parse
from tests.support.replay.replay import Replay, Step

MOST_REPEATS = 3


def check(
    history: History,
    prefix: bytes,
    scripts: Mapping[str, str],
    *,
    unscripted: frozenset[str] = frozenset(),
    tells_lengths: bool = True,
) -> Verdict:
    """Judges the history.

    ``scripts`` are those that the clients call, by SHA-1; operations that are no script are ``unscripted``.
    ``tells_lengths``: whether a publish answers the length of the queue.
    """
    steps: dict[str, list[Step]] = defaultdict(list)

    def note(step: Step) -> None:
        steps[history.addresses.get(step.unit.first.source, "")].append(step)

    replay = Replay(prefix, scripts, on_step=note)
    for line in history.lines:
        entry = parse(line)
        if entry is not None and replay.add(entry) is not None:
            break
    finding = replay.finding or replay.end()
    if finding is not None:
        return Verdict(REJECTED, str(finding), finding.group)
    if steps[""]:
        return Verdict(UNKNOWN, f"{len(steps[''])} calls came by connections that are none of a lane's")
    for lane, records in history.by_lane().items():
        if (verdict := _settled_twice(lane, records)) is not None:
            return verdict
        found = [record for record in records if record.operation.op not in unscripted]
        if (verdict := _aligned(lane, found, steps[lane], tells_lengths)) is not None:
            return verdict
    counts = {name: count for name, count in replay.counts.items() if name != "lines"}
    if replay.not_judged or counts:
        return Verdict(UNKNOWN, f"not every step could be judged: {counts}")
    if replay.keys.groups:
        return Verdict(UNKNOWN, f"the queue was not drained: {sorted(replay.keys.groups)}")
    return Verdict(ACCEPTED, f"{replay.steps:,} steps")


def _settled_twice(lane: str, records: Sequence[Record]) -> Verdict | None:
    """What the steps of an operation that is no script cannot tell: a lease that was given back is none any more."""
    over: set[object] = set()
    for record in records:
        token = record.operation.args.get("token")
        if record.operation.op in ("ack", "nack", "extend") and record.reply == Ok(1):
            if token in over:
                what = f"{write_operation(record.operation)} -> 1"
                return Verdict(REJECTED, f"SETTLED lane {lane}, of a lease that it had settled: {what}", _group(record))
            over |= {token} if record.operation.op != "extend" else set()
    return None


def _aligned(lane: str, records: Sequence[Record], steps: Sequence[Step], tells_lengths: bool) -> Verdict | None:
    """None if the records can be the steps; else why not."""
    reached, furthest = {0}, (0, 0)
    for number, record in enumerate(records):
        after: set[int] = set()
        for at in reached:
            if record.reply is None:
                after.add(at)
            for count in range(1, MOST_REPEATS + 1):
                tries = steps[at : at + count]
                if len(tries) == count and _are(record, tries, tells_lengths):
                    after.add(at + count)
        if not after:
            at = max(reached)
            came = write_reply(record.reply) if record.reply is not None else "unknown"
            due = _due(steps[at]) if at < len(steps) else "nothing more"
            what = f"{write_operation(record.operation)}\n  was answered: {came}\n  the server ran: {due}"
            return Verdict(REJECTED, f"REPLY lane {lane}, call {record.number}: {what}", _group(record))
        reached, furthest = after, max(furthest, (number, max(after)))
    if len(steps) in reached:
        return None
    return Verdict(REJECTED, f"REPLY lane {lane}: the server ran what nobody called: {_due(steps[furthest[1]])}")


def _are(record: Record, tries: Sequence[Step], tells_lengths: bool) -> bool:
    """Whether the call is these steps: repeated on other connections, and the last one's reply is the answer."""
    if len({step.unit.first.source for step in tries}) < len(tries):
        return False
    args = record.operation.args
    for step in tries:
        asked = step.operation.args
        same = [name for name in ("group", "payload", "token") if name in args and record.operation.op != "claim"]
        if step.operation.op != record.operation.op or any(asked.get(name) != args[name] for name in same):
            return False
    last = tries[-1]
    if record.delivery is not None and record.token != last.operation.args.get("token"):
        return False
    if record.reply is None:
        return True
    if record.operation.op == "publish" and not tells_lengths:
        return any(isinstance(reply, Ok) for reply in last.replies)
    return record.reply in last.replies


def _due(step: Step) -> str:
    replies = " or ".join(map(write_reply, step.replies)) or "no whole script"
    return f"{write_operation(step.operation)} -> {replies}"


def _group(record: Record) -> bytes:
    group = record.delivery.group if record.delivery is not None else record.operation.args.get("group")
    return group if isinstance(group, bytes) else b""
