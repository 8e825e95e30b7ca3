"""E15-2: a command that is refused in the middle of an operation loses nothing, and what it leaves heals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import redis

from model.operation import PREFIX, Ok, Reply, Value
from model.state import State
from tests.support.port.checks.rig import NotAsked, Rig, refused

NEW = b"new"  # the payload that is published
LEASE: dict[str, Value] = {"group": b"g", "token": b"A"}
PUBLISH: dict[str, Value] = {"group": b"g", "payload": NEW, "priority": 4}


@dataclass(frozen=True)
class Situation:
    """A call, and what the queue holds when it comes; ``needs`` the port must declare.

    Token A holds the group where it is leased.
    """

    name: str
    op: str
    prepare: Callable[[Rig], None]
    args: dict[str, Value]
    needs: str = ""


def _nothing(rig: Rig) -> None:
    pass


def _waiting(rig: Rig) -> None:
    for payload in (b"1", b"2", b"3"):
        rig.by_others("publish", group=b"g", payload=payload, priority=2)


def _leased(rig: Rig) -> None:
    _waiting(rig)
    rig.by_others("claim", token=b"A")


def _last_leased(rig: Rig) -> None:
    rig.by_others("publish", group=b"g", payload=b"1", priority=2)
    rig.by_others("claim", token=b"A")


def _field_lost(rig: Rig) -> None:
    _leased(rig)
    rig.by_others("drop-prio", group=b"g")


def _behind_stale(rig: Rig) -> None:
    _waiting(rig)
    rig.by_others("crowd", size=3, tier=0, score_ms=0, visibility_ms=0, messages=0)


def _behind_locked(rig: Rig) -> None:
    _waiting(rig)
    rig.by_others("crowd", size=9, tier=0, score_ms=0, visibility_ms=30_000, messages=1)


SITUATIONS = (
    Situation("a new group", "publish", _nothing, PUBLISH),
    Situation("a known group", "publish", _waiting, PUBLISH),
    Situation("a leased group", "publish", _leased, PUBLISH),
    Situation("a free group", "claim", _waiting, {"token": b"A"}),
    Situation("behind stale entries", "claim", _behind_stale, {"token": b"A"}),
    Situation("behind locked groups", "claim", _behind_locked, {"token": b"A"}),
    Situation("messages left", "ack", _leased, LEASE),
    Situation("the last message", "ack", _last_leased, LEASE),
    Situation("its field lost", "ack", _field_lost, LEASE, needs="tier-recovery"),
    Situation("at once", "nack", _leased, LEASE),
    Situation("with a delay", "nack", _leased, {**LEASE, "delay_ms": 5_000}),
    Situation("its field lost", "nack", _field_lost, LEASE, needs="tier-recovery"),
    Situation("a lease", "extend", _leased, LEASE, needs="extend"),
)


def check_rights(rig: Rig) -> None:
    """Each operation in each situation, by a user who lacks one of the commands that it takes there, and again."""
    refusals = 0
    of_connections = _of_connections(rig)
    for situation in SITUATIONS:
        if situation.needs and not rig.has(situation.needs):
            continue
        for command in sorted(_commands(rig, situation) - of_connections):
            with _user_without(rig, command) as url:
                refusals += _try(rig, situation, command, url)
    said = "no command was ever refused: does the port take the user and the password from the URL of open?"
    rig.expect(refusals > 0, said)


def _of_connections(rig: Rig) -> set[str]:
    """The commands with which a connection is set up, and that of the runner itself."""
    try:
        return {name.decode() for name in rig.admin.execute_command("ACL", "CAT", "connection")} | {"info"}
    except redis.RedisError as error:
        raise NotAsked(f"this server has no users: {error}") from error


def _commands(rig: Rig, situation: Situation) -> set[str]:
    """The commands that the operation takes in this situation, in scripts or not, as the server counts them."""
    rig.reset()
    situation.prepare(rig)
    rig.port.open(PREFIX, rig.port.url)
    before = _counts(rig)
    rig.by_port(situation.op, **situation.args)
    return set(_counts(rig) - before)


def _counts(rig: Rig) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, entry in rig.admin.info("commandstats").items():
        counts[name.removeprefix("cmdstat_").split("|")[0]] += entry["calls"]  # of `script|load` the right is `script`
    return counts


@contextmanager
def _user_without(rig: Rig, command: str) -> Iterator[str]:
    """The URL of a user with every right but one."""
    name = f"without-{command}"
    try:
        rig.admin.execute_command("ACL", "SETUSER", name, "reset", "on", ">secret", "~*", "&*", "+@all", f"-{command}")
    except redis.RedisError as error:
        raise NotAsked(f"no user can be made on this server: {error}") from error
    try:
        parts = urlsplit(rig.port.url)
        yield f"redis://{name}:secret@{parts.hostname}:{parts.port}{parts.path}"
    finally:
        rig.admin.execute_command("ACL", "DELUSER", name)
        rig.port.using = rig.port.url


def _try(rig: Rig, situation: Situation, command: str, url: str) -> bool:
    """Whether the operation was refused. The port stays the user who lacks the command until all is drained."""
    rig.reset()
    situation.prepare(rig)
    before = rig.state()
    rig.port.open(PREFIX, url)
    rig.said(f"the port is a user without the command {command.upper()}")
    where = f"{situation.op}, {situation.name}, refused {command.upper()}"
    replies: list[Reply] = []
    for _ in range(2):
        replies.append(rig.by_port(situation.op, **situation.args))
        _judge(rig, before, situation.op, where, replies)
    rig.expect_all_delivered(where)
    return refused(replies[0])


def _judge(rig: Rig, before: State, op: str, where: str, replies: list[Reply]) -> None:
    """What must hold after each try, whether it was refused or the port found another way."""
    after = rig.state()
    indexed = {group for tier in after.ready for group in tier}
    lost = [group for group, messages in after.queues.items() if messages and group not in indexed]
    rig.expect(not lost, f"{where}: {lost} have messages and no entry in the index: no claim can reach them")
    lone = sorted(set(after.prio) - indexed - set(after.queues))
    rig.expect(not lone, f"{where}: the prio field of {lone} is left alone, for ever")
    had, has = before.messages(b"g") or (), after.messages(b"g") or ()
    stored = sum(isinstance(reply, Ok) for reply in replies) if op == "publish" else 0
    told = f"held {list(had)}, now {list(has)}"
    if op == "ack":
        settled = replies.count(Ok(1))
        rig.expect(settled <= 1, f"{where}: one lease was settled twice")
        rig.expect(has in (had, had[1:]), f"{where}: a message was popped that nobody got: {told}")
        rig.expect(not settled or has == had[1:], f"{where}: acked, and the message is still there: {told}")
    else:
        rig.expect(len(has) >= len(had), f"{where}: a message was popped that nobody got: {told}")
        rig.expect(has == (*had, *[NEW] * stored), f"{where}: {len(replies)} tries, {stored} messages stored: {told}")
