"""What fakeredis does otherwise than a server, and the suite has to know: each difference, on both.

The test of one that is gone fails: take it out here and in ``spec/museum.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from random import Random
from typing import Any

import pytest
import time_machine

from tests.support.fake import FakeHost
from tests.support.servers import discover

Probe = Callable[[Any], object]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    """The first real server found."""
    sources = discover()
    if not sources:
        pytest.skip("no real server was found")
    host = sources[0].start()
    yield host
    host.stop()


def answer(probe: Probe, host: Any) -> object:
    """What a host answers; of an error its class."""
    client = host.client()
    client.flushall()
    try:
        with host.clock.frozen() if isinstance(host, FakeHost) else nullcontext():
            return probe(client)
    except Exception as error:
        return type(error).__name__
    finally:
        client.close()


def full(client: Any) -> object:
    """A write to a server at its limit."""
    client.config_set("maxmemory", 1)
    try:
        return client.set("key", "value")
    finally:
        client.config_set("maxmemory", 0)


def forbidden(client: Any) -> object:
    """A command inside a script that its user may not run."""
    client.execute_command("ACL", "SETUSER", "guest", "reset", "on", ">secret", "~*", "+@all", "-lindex")
    with client.client() as guest:  # one connection
        guest.execute_command("AUTH", "guest", "secret")
        return guest.eval("return redis.call('LINDEX', KEYS[1], '0') or 'absent'", 1, "key")


DIFFERENCES: dict[str, tuple[Probe, object, object]] = {
    "global": (lambda c: c.eval("return type(misspelt)", 0), b"nil", "ResponseError"),
    "broken script": (lambda c: len(c.script_load("return = 1")), 40, "ResponseError"),
    "type of an error": (
        lambda c: c.eval("local reply = redis.pcall('INCR', KEYS[1], 'x') return type(reply.err)", 1, "key"),
        b"userdata",
        b"string",
    ),
    "call of nothing": (lambda c: c.eval("return redis.call()", 0), "TypeError", "ResponseError"),
    "upper-case SHA": (lambda c: c.evalsha(c.script_load("return 1").upper(), 0), "NoScriptError", 1),
    "large reply": (lambda c: c.eval("return 1e19", 0), 10**19, -(2**63)),
    "empty table": (lambda c: c.eval("return cjson.encode({})", 0), b"[]", b"{}"),
    "milliseconds of PSETEX": (lambda c: (c.psetex("key", 300, "value"), c.exists("key"))[1], 0, 1),
    "maxmemory": (full, True, "OutOfMemoryError"),
    "rights inside a script": (forbidden, b"absent", "ResponseError"),
    "INFO": (lambda c: "used_memory" in c.info("memory"), "ResponseError", True),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_fakeredis_differs(server: Any, name: str) -> None:
    """The server does one thing and fakeredis another, just as they are known to."""
    probe, fake, real = DIFFERENCES[name]
    assert (answer(probe, FakeHost()), answer(probe, server)) == (fake, real)


def test_fakeredis_at_a_deadline() -> None:
    """Under a clock of whole milliseconds it loses some keys at their deadline; under the suite's it keeps them."""
    host, chance, lost = FakeHost(), Random(1), 0
    clock: Any = host.clock
    client = host.client()
    for number in range(200):
        now_ms, px = 1_000 + 100 * number, chance.randrange(1, 60_000)
        with time_machine.travel(now_ms / 1000, tick=False):
            client.set("key", "value", px=px)
        with time_machine.travel((now_ms + px) / 1000, tick=False):
            lost += not client.exists("key")
        clock.set_ms(now_ms, touch=())
        with clock.frozen():
            client.set("key", "value", px=px)
        clock.set_ms(now_ms + px)
        with clock.frozen():
            assert client.exists("key")
    assert lost > 0
