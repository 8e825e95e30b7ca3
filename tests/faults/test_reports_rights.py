"""Reports of users with few rights: which commands and keys the scripts need, and what a refusal leaves."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from redisq.scripts import SCRIPTS
from tests.faults.transports import KINDS, everything_once, transport
from tests.support.running import BaseServer

RIGHTS = sorted(set(re.findall(r"redis\.p?call\('([A-Z]+)'", b"".join(s.source for s in SCRIPTS.values()).decode())))
KEYS = [
    f"~redisq:{family}" for family in ("q:*", "lock:*", "ready:0", "ready:1", "ready:2", "ready:3", "ready:4", "prio")
]


def limited(server: BaseServer, *rights: str) -> str:
    """The URL of a user with these rights, and the keys of the key space alone."""
    client: Any = server.client()
    connecting = [] if urlsplit(server.url).path in ("", "/", "/0") else ["+select"]
    try:
        client.execute_command("ACL", "SETUSER", "worker", "reset", "on", ">secret", *KEYS, *connecting, *rights)
    except redis.ResponseError as error:
        pytest.skip(f"{server.name}: users cannot be made here: {error}")
    return server.url.replace("redis://", "redis://worker:secret@", 1)


@pytest.mark.parametrize("kind", KINDS)
def test_least_rights(server: BaseServer, kind: str) -> None:
    """B44, B48: EVALSHA, EVAL, the scripts' commands and the key space are enough, on a cold and a warm cache."""
    admin: Any = server.client()
    url = limited(server, "+evalsha", "+eval", *(f"+{command.lower()}" for command in RIGHTS))
    try:
        for cold in (True, False):
            if cold:
                admin.script_flush()
            with transport(kind, url) as queue:
                everything_once(queue)
    finally:
        admin.execute_command("ACL", "DELUSER", "worker")


@pytest.mark.parametrize("kind", KINDS)
def test_without_eval(server: BaseServer, kind: str) -> None:
    """B48: without EVAL a warm cache is enough; on a cold one the refusal is told and nothing is written."""
    admin: Any = server.client()
    url = limited(server, "+evalsha", *(f"+{command.lower()}" for command in RIGHTS))
    try:
        admin.script_flush()
        with transport(kind, url) as queue:
            for call in (lambda: queue.publish("g", "m"), lambda: queue.publish_many([("g", "m")]), queue.claim):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    call()
            assert admin.keys("*") == []
        for script in SCRIPTS.values():
            admin.script_load(script.source)
        with transport(kind, url) as queue:
            assert queue.publish("g", "m") == 1
            assert queue.ack(queue.claim()) is True
    finally:
        admin.execute_command("ACL", "DELUSER", "worker")


def refused(queue: Any) -> bool:
    """Whether something of all the operations is."""
    try:
        everything_once(queue)
    except redis.RedisError:
        return True
    return False


def test_one_right_less_is_seen(server: BaseServer) -> None:
    """Each of these rights and keys is needed: without it something of the same check is refused."""
    admin: Any = server.client()
    allowed = {f"+{command.lower()}" for command in RIGHTS}
    seldom = {"+zscore", "+type", "+pttl"}  # needed only where something is lost, broken or locked and due
    try:
        for missing in ("+evalsha", *sorted(allowed - seldom)):
            url = limited(server, *({"+evalsha", "+eval", *allowed} - {missing}))
            with transport("sync", url) as queue:
                assert refused(queue), f"{missing} is not needed"
            admin.flushdb()
        url = limited(server, "+evalsha", "+eval", *allowed, "resetkeys", "~redisq:prio")
        with transport("sync", url) as queue:
            assert refused(queue), "other keys than that which is declared are not needed"
    finally:
        admin.execute_command("ACL", "DELUSER", "worker")
