"""More servers of one kind: another one beside a server, and a replica of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from tests.support.containers import PORT, Container
from tests.support.running import BaseServer
from tests.support.servers import Server

SYNC_SECONDS = 20.0


def another(server: BaseServer, *args: str) -> BaseServer:
    """One more server of the same kind, with these arguments; the test is skipped where none can be started."""
    if isinstance(server, Server):
        return Server(server.binary, args)
    if isinstance(server, Container):
        return Container(server.image, args)
    pytest.skip(f"{server.name}: another one like it cannot be started from here")


def until(happens: Any, what: str) -> None:
    """Waits for something that a server does by itself, in real time."""
    give_up = time.monotonic() + SYNC_SECONDS
    while not happens():
        assert time.monotonic() < give_up, f"not within {SYNC_SECONDS:.0f} s: {what}"
        time.sleep(0.005)


def address(server: BaseServer) -> tuple[str, int]:
    """Where another one like it reaches the server."""
    if isinstance(server, Container):
        networks = server.running.attrs["NetworkSettings"]["Networks"].values()
        return next(network["IPAddress"] for network in networks), PORT
    return "127.0.0.1", server.port


@contextmanager
def replica_of(server: BaseServer) -> Iterator[BaseServer]:
    """A replica of the server that is in step with it."""
    master: Any = server.client()
    try:
        old = master.config_get("repl-diskless-sync-delay")
        master.config_set("repl-diskless-sync-delay", 0)  # by the server's clock, which stands still
    except redis.ResponseError as error:
        pytest.skip(f"{server.name}: its configuration cannot be changed: {error}")
    try:
        with another(server) as follower:
            if server.clock.exact:
                follower.clock.set_ms(server.clock.now_ms())
            client: Any = follower.client()
            client.execute_command("REPLICAOF", *address(server))
            until(lambda: client.info("replication")["master_link_status"] == "up", "the replica follows")
            yield follower
    finally:
        for name, value in old.items():
            master.config_set(name, value)


def in_step(server: BaseServer, replica: BaseServer) -> None:
    """Waits until the replica has all that the server has."""
    master, follower = server.client(), replica.client()

    def same() -> bool:
        ours, theirs = master.info("replication"), follower.info("replication")
        return bool(ours["master_repl_offset"] == theirs["slave_repl_offset"])

    until(same, "the replica has everything")


def promote(replica: BaseServer) -> None:
    """It follows nobody any more, and takes writes."""
    client: Any = replica.client()
    client.execute_command("REPLICAOF", "NO", "ONE")
