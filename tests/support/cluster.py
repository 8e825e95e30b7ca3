"""A cluster on loopback: three nodes of one kind of server, without replicas, that share the slots among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.running import START_SECONDS, ServerError
from tests.support.servers import Server

SLOTS = 16384
NODES = 3
ARGS = ("--cluster-enabled", "yes", "--cluster-node-timeout", "3600000")  # their clocks jump


class Cluster:
    """Node n serves the n-th third of the slots. A context manager that stops them."""

    def __init__(self, binary: Path | str) -> None:
        """`ServerError` if they do not come together."""
        self.nodes: list[Server] = []
        try:
            for _ in range(NODES):
                self.nodes.append(Server(binary, ARGS))
            self.clients: list[Any] = [node.client() for node in self.nodes]
            self.ids = [client.execute_command("CLUSTER", "MYID") for client in self.clients]
            for number, client in enumerate(self.clients):
                slots = range(number * SLOTS // NODES, (number + 1) * SLOTS // NODES)
                client.execute_command("CLUSTER", "ADDSLOTS", *slots)
                self.clients[0].execute_command("CLUSTER", "MEET", "127.0.0.1", self.nodes[number].port)
            self._until(self._together, "the nodes come together")
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Stops the nodes."""
        for node in self.nodes:
            node.stop()

    def slot(self, key: str) -> int:
        """The slot of a key."""
        return int(self.clients[0].execute_command("CLUSTER", "KEYSLOT", key))

    def keys(self, slot: int) -> list[list[bytes]]:
        """The keys of a slot that each node holds."""
        return [sorted(client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, SLOTS)) for client in self.clients]

    def begin_move(self, slot: int, source: int, target: int) -> None:
        """The slot is to move: from now on the source sends callers to the target for what it has not."""
        self.clients[target].execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.ids[source])
        self.clients[source].execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", self.ids[target])

    def move(self, keys: list[bytes], source: int, target: int) -> None:
        """One batch of keys moves at once."""
        port = self.nodes[target].port
        self.clients[source].execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *keys)

    def end_move(self, slot: int, target: int) -> None:
        """The slot is the target's; the source, without keys of it, sends every caller there."""
        for number in (target, *(number for number in range(NODES) if number != target)):
            self.clients[number].execute_command("CLUSTER", "SETSLOT", slot, "NODE", self.ids[target])

    def _together(self) -> bool:
        for node in self.nodes:
            if node.clock.exact:
                node.clock.advance(200)  # a node waits for seconds of its clock before it serves
        said = [str(client.execute_command("CLUSTER", "INFO")) for client in self.clients]
        return all("cluster_state:ok" in each and f"cluster_known_nodes:{NODES}" in each for each in said)

    @staticmethod
    def _until(happens: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + START_SECONDS
        while not happens():
            if time.monotonic() > give_up:
                raise ServerError(f"not within {START_SECONDS:.0f} s: {what}")
            time.sleep(0.02)
