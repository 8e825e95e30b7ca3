"""What the tests of the library share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers import Server, discover
from tests.unit.queues import KINDS, Bench, Meddled


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """Makes queues of each kind."""
    bench = Bench(request.param)
    yield bench
    bench.end()


@pytest.fixture
def queue(bench: Bench) -> Any:
    """A queue on an empty fakeredis."""
    return bench.queue(bench.fake())


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Server]:
    """A real server for the session."""
    sources = discover()
    if not sources:
        pytest.skip("no redis-server or valkey-server found")
    with sources[0].start() as server:
        yield server


@pytest.fixture
def server(shared_server: Server) -> Server:
    """A real server with empty database and script cache."""
    with shared_server.client() as client:
        client.flushall()
        client.script_flush()
    return shared_server


@pytest.fixture
def meddled(bench: Bench) -> Meddled:
    """A queue of each kind to meddle with."""
    return Meddled(bench)
