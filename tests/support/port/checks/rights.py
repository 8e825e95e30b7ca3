"""E15-2: a command that is refused in the middle of an operation loses nothing, and what it leaves heals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import redis

from model.operation import PREFIX, Ok, Value
from model.state import State
from tests.support.port.checks.rig import NotAsked, Rig, refused
from tests.support.port.witness import Port

# What the scripts use, and what a port of the original design uses besides.
COMMANDS = (
    *("get", "getex", "set", "del", "exists", "pexpire", "pttl", "type", "time"),
    *("hget", "hset", "hsetnx", "hdel", "lindex", "llen", "lpop", "rpush"),
    *("zadd", "zrem", "zrange", "zrangebyscore", "zscore"),
)
HELD: dict[str, Value] = {"group": b"g", "token": b"A"}


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


def _nothing(rig: Rig) -> None:
    pass


PUBLISH: dict[str, Value] = {"group": b"g", "payload": b"new", "priority": 4}
SITUATIONS: tuple[tuple[str, str, Callable[[Rig], None], dict[str, Value]], ...] = (
    ("a new group", "publish", _nothing, PUBLISH),
    ("a known group", "publish", _waiting, PUBLISH),
    ("a leased group", "publish", _leased, PUBLISH),
    ("a free group", "claim", _waiting, {"token": b"A"}),
    ("behind stale entries", "claim", _behind_stale, {"token": b"A"}),
    ("messages left", "ack", _leased, HELD),
    ("the last message", "ack", _last_leased, HELD),
    ("its field lost", "ack", _field_lost, HELD),
    ("at once", "nack", _leased, HELD),
    ("with a delay", "nack", _leased, {**HELD, "delay_ms": 5_000}),
    ("a lease", "extend", _leased, HELD),
)


def check_rights(port: Port) -> None:
    """Each operation in each situation, by a user without one command, twice, and then by one with every right."""
    rig = Rig(port)
    rig.reset()
    refusals = 0
    for command in COMMANDS:
        with _user_without(rig, command) as url:
            for situation in SITUATIONS:
                if situation[1] != "extend" or "extend" in port.adapter.hello.capabilities:
                    refusals += _try(rig, command, url, situation)
    rig.expect(refusals > 0, "no command of the port was ever refused to a user without the right to it")


@contextmanager
def _user_without(rig: Rig, command: str) -> Iterator[str]:
    name = f"without-{command}"
    try:
        rig.admin.execute_command("ACL", "SETUSER", name, "reset", "on", ">secret", "~*", "&*", "+@all", f"-{command}")
    except redis.RedisError as error:
        raise NotAsked(f"users cannot be made on this server: {error}") from error
    try:
        parts = urlsplit(rig.port.url)
        yield f"redis://{name}:secret@{parts.hostname}:{parts.port}{parts.path}"
    finally:
        rig.admin.execute_command("ACL", "DELUSER", name)
        rig.port.using = rig.port.url


def _try(rig: Rig, command: str, url: str, situation: tuple[str, str, Callable[[Rig], None], dict[str, Value]]) -> bool:
    """Whether the operation was refused here. The port stays the user who lacks the command."""
    name, op, prepare, args = situation
    rig.reset()
    prepare(rig)
    before = rig.state()
    rig.port.open(PREFIX, url)
    rig.said(f"the port is a user without the command {command.upper()}")
    where = f"{op}, {name}, refused {command.upper()}"
    if not refused(rig.by_port(op, **args)):
        return False
    _judge(rig, before, op, where, 0)
    again = rig.by_port(op, **args)
    _judge(rig, before, op, where, int(op == "publish" and isinstance(again, Ok)))
    left = {group: list(messages or ()) for group, messages in rig.state().queues.items()}
    for group, payload in rig.drain():
        rig.expect(left.get(group, [])[:1] == [payload], f"{where}: {group!r} delivers {payload!r}, it held {left}")
        left[group].pop(0)
    rig.expect(not any(left.values()), f"{where}: never delivered: {left}")
    state = rig.state()
    stays = bool(state.queues or state.locks or state.prio or any(state.ready) or state.strays)
    rig.expect(not stays, f"{where}: keys stay when all is drained: {state.to_json()}")
    return True


def _judge(rig: Rig, before: State, op: str, where: str, stored: int) -> None:
    """What must hold after a refusal."""
    after = rig.state()
    indexed = {group for tier in after.ready for group in tier}
    lost = [group for group, messages in after.queues.items() if messages and group not in indexed]
    rig.expect(not lost, f"{where}: {lost} have messages and no entry in the index: no claim can reach them")
    lone = set(after.prio) - indexed - set(after.queues)
    rig.expect(not lone, f"{where}: the prio field of {lone} is left alone, for ever")
    had, has = before.messages(b"g") or (), after.messages(b"g") or ()
    allowed = [had, (*had, *[b"new"] * stored)] + ([had[1:]] if op == "ack" else [])
    if len(has) < len(had):
        rig.expect(has in allowed, f"{where}: a message was popped that nobody got: held {had}, now {has}")
    rig.expect(has in allowed, f"{where}: refused, and stored all the same: held {had}, now {has}")
