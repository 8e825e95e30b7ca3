"""E15: users who lack one command each, for every script, in every situation in which the script reaches it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from model.operation import ARGV, Error, Ok, Reply
from model.state import State
from tests.faults.rig import Rig, codes

COMMAND = re.compile(rb"redis\.p?call\('([A-Z]+)'")
ALWAYS = {("claim", "GETEX"): "a broken lock"}  # it cannot do without, but for a lock of which TYPE says enough
TAKES_NOTHING = ("a free group", "SET")  # a claim that may not set the lock has not moved the entry either
NEW = b"new"  # the payload that is published


@dataclass(frozen=True)
class Situation:
    """A call, and what the queue holds when it comes. Token A holds group g where it is leased."""

    name: str
    prepare: Callable[[Rig], None]
    op: str
    arguments: dict[str, Any]


def _three(rig: Rig, group: str = "g", priority: int = 2) -> None:
    for payload in ("1", "2", "3"):
        rig.publish(group, payload, priority=priority)


def _leased(rig: Rig) -> None:
    _three(rig)
    rig.claim("A")
    _three(rig, "bystander", 1)


def _last_leased(rig: Rig) -> None:
    rig.publish("g", "1", priority=2)
    rig.claim("A")


def _field_lost(prepare: Callable[[Rig], None]) -> Callable[[Rig], None]:
    def prepared(rig: Rig) -> None:
        prepare(rig)
        rig.foreign("drop-prio", group="g")

    return prepared


def _field_spoilt(rig: Rig) -> None:
    _three(rig)
    rig.foreign("set-prio", group="g", value="2.5")


def _nothing(rig: Rig) -> None:
    _three(rig, "bystander", 1)


def _behind_locked(rig: Rig) -> None:
    _locked(rig)
    rig.publish("free", "1", priority=1)
    rig.foreign("set-entry", group="free", tier=1, score_ms=rig.now_ms - 400)


def _locked(rig: Rig) -> None:
    rig.foreign("crowd", size=10, tier=1, score_ms=rig.now_ms - 500, visibility_ms=30_000, messages=2)


def _stale(rig: Rig) -> None:
    _three(rig)
    rig.foreign("crowd", size=3, tier=0, score_ms=0, visibility_ms=0, messages=0)


def _broken_list(rig: Rig) -> None:
    _three(rig)
    _three(rig, "broken", 1)
    rig.foreign("break-list", group="broken")


def _broken_lock(rig: Rig) -> None:
    _three(rig)
    rig.foreign("break-lock", group="g")


PUBLISH: dict[str, Any] = {"group": "g", "payload": NEW, "priority": 4}
HELD: dict[str, Any] = {"group": "g", "token": "A"}
SITUATIONS = [
    Situation("a new group", _nothing, "publish", PUBLISH),
    Situation("a new group by arrival", _nothing, "publish", {**PUBLISH, "score_ms": None}),
    Situation("a known group", _three, "publish", PUBLISH),
    Situation("a leased group", _leased, "publish", PUBLISH),
    Situation("a field that is lost", _field_lost(_three), "publish", PUBLISH),
    Situation("a field that is spoilt", _field_spoilt, "publish", PUBLISH),
    Situation("a free group", _three, "claim", {"token": "A"}),
    Situation("behind locked groups", _behind_locked, "claim", {"token": "A"}),
    Situation("locked groups alone", _locked, "claim", {"token": "A"}),
    Situation("behind stale entries", _stale, "claim", {"token": "A"}),
    Situation("beside a broken list", _broken_list, "claim", {"token": "A"}),
    Situation("a broken lock", _broken_lock, "claim", {"token": "A"}),
    Situation("more messages", _leased, "ack", HELD),
    Situation("the last message", _last_leased, "ack", HELD),
    Situation("more messages, the field lost", _field_lost(_leased), "ack", HELD),
    Situation("the last message, the field lost", _field_lost(_last_leased), "ack", HELD),
    Situation("at once", _leased, "nack", HELD),
    Situation("with a delay", _leased, "nack", {**HELD, "delay_ms": 5000}),
    Situation("with a delay, the field lost", _field_lost(_leased), "nack", {**HELD, "delay_ms": 5000}),
    Situation("a lease", _leased, "extend", HELD),
    Situation("a lease, the field lost", _field_lost(_leased), "extend", HELD),
]


def check_e15(rig: Rig) -> None:
    """A command that is refused in the middle of a script loses nothing, and what it leaves heals."""
    users: dict[str, Rig] = {}
    refused = set()
    for op in ARGV:
        for command in commands(rig, op):
            if command not in users:
                users[command] = rig.user(f"without-{command.lower()}", "~*", "+@all", f"-{command.lower()}")
            for situation in SITUATIONS:
                if situation.op != op:
                    continue
                if is_refused(rig, users[command], situation, command):
                    refused.add((op, command))
                else:
                    told = ALWAYS.get((op, command), situation.name) == situation.name
                    rig.expect(told, f"{op}, {situation.name}, without {command}: the refusal is not told")
    missed = {(op, command) for op in ARGV for command in commands(rig, op)} - refused
    rig.expect(not missed, f"no situation reaches {sorted(missed)}")


def commands(rig: Rig, op: str) -> list[str]:
    """The commands that the script names; of a nack that is no script, those of its round trips."""
    if rig.old and op in ("nack", "extend"):
        return ["GET", "HGET", "ZADD", "SET", "DEL"] if op == "nack" else []
    return sorted({name.decode() for name in COMMAND.findall(rig.caller.lua.source[op])})


def is_refused(rig: Rig, poor: Rig, situation: Situation, command: str) -> bool:
    """Tries the call three times, and heals what is left; False if the call does not need the command here."""
    rig.reset()
    situation.prepare(rig)
    before = rig.state()
    where = f"{situation.op}, {situation.name}, without {command}"
    first = poor.do(situation.op, **situation.arguments)
    if not codes(first):
        return False
    rig.expect(codes(first) != "REDISQ_BADARG", f"{where}: refused for another reason")
    if (situation.name, command) == TAKES_NOTHING:
        rig.expect(rig.state() == before, f"{where}: refused, and something was written before")
    replies = [first]
    _judge(rig, before, situation, replies, where)
    for caller in (poor, rig):  # the same lease once more, then by a user with every right
        replies.append(caller.do(situation.op, **situation.arguments))
        _judge(rig, before, situation, replies, where)
    rig.expect(not codes(replies[-1]), f"{where}: a user with every right is refused as well")
    left = {group: list(messages) for group, messages in rig.state().queues.items() if messages is not None}
    for group, payload in rig.drain():
        rig.expect(left.get(group, [])[:1] == [payload], f"{where}: {group!r} delivers {payload!r}, not {left}")
        del left[group][0]
    rig.expect(not any(left.values()), f"{where}: never delivered: {left}")
    rig.raw("DEL", rig.key("q", "broken"))
    rig.expect_empty()
    return True


def _judge(rig: Rig, before: State, situation: Situation, replies: list[Reply], where: str) -> None:
    """What must hold after each of the tries."""
    after = rig.state()
    indexed = {group for tier in after.ready for group in tier}
    for group, messages in after.queues.items():
        if messages is not None:
            rig.expect(group in indexed, f"{where}: {group!r} has messages and no index entry")
    lone = set(after.prio) - indexed - set(after.queues)
    rig.expect(not lone, f"{where}: a lone prio field of {lone}")
    stored = sum(isinstance(reply, Ok) for reply in replies) if situation.op == "publish" else 0
    for group in before.queues.keys() | after.queues.keys():
        had, has = before.messages(group), after.messages(group)
        if had is None or has is None:
            continue
        wanted = [(*had, *[NEW] * stored)] if group == b"g" else [had]
        if situation.op == "ack" and group == b"g":
            wanted.append(had[1:])  # the delivered one, and no other
        told = f"{group!r} held {had}, now {has}, after {len(replies)} tries"
        if len(has) < len(had):
            rig.expect(has in wanted, f"{where}: an undelivered message was popped: {told}")
        if len(has) > len(had) + stored:
            rig.expect(has in wanted, f"{where}: refused, and stored all the same: {told}")
        rig.expect(has in wanted, f"{where}: {told}")
    if situation.op == "ack" and replies[-1] == Ok(1):
        rig.expect(after.messages(b"g") == (before.messages(b"g") or ())[1:], f"{where}: settled, and not removed")
    settled = [reply for reply in replies if not isinstance(reply, Error)]
    if situation.op in ("ack", "nack"):
        rig.expect(settled.count(Ok(1)) <= 1, f"{where}: one lease settles twice")
