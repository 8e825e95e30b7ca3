"""Every test here that takes a server runs once on each real one of the session, by the machine's own clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.faults.conftest import once_per_server
from tests.support.clock import VirtualClock
from tests.support.running import BaseServer
from tests.support.session import Session


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much is run."""
    group = parser.getgroup("redisq")
    group.addoption("--histories", type=int, default=1, metavar="N", help="runs on each server, each with its own seed")
    group.addoption("--calls", type=int, default=120, metavar="N", help="rounds of each worker: a publish, or a lease")
    group.addoption("--seed", default="0", metavar="TEXT", help="decides what is done and injected; default: 0")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Once per server, and per history with its seed."""
    once_per_server(metafunc)
    if "seed" in metafunc.fixturenames:
        option = metafunc.config.getoption
        metafunc.parametrize("seed", [f"{option('--seed')}.{number}" for number in range(option("--histories"))])


@pytest.fixture
def server(request: pytest.FixtureRequest, run: Session) -> Iterator[BaseServer]:
    """A real server with an empty database. Workers live by real time, so the server does, too."""
    host: BaseServer = [host for host in run.hosts if host.name != "fakeredis"][request.param]
    host.flush()
    if isinstance(host.clock, VirtualClock):
        with host.clock.released():
            yield host
    else:
        yield host
    host.flush()


@pytest.fixture(autouse=True)
def active_expiry(request: pytest.FixtureRequest) -> Iterator[None]:
    """Under a virtual clock a server does not delete expired keys by itself; here it does, as in production."""
    if "server" not in request.fixturenames:
        yield
        return
    client = request.getfixturevalue("server").client()
    try:
        client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 1)
    except redis.ResponseError:  # a server that refuses DEBUG never stopped
        yield
        return
    yield
    client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
