"""Every test here that takes a server runs once on each real one of the session."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.judge import Judge, prepare
from tests.faults.topology import replica_of
from tests.support.options import SESSION
from tests.support.running import BaseServer
from tests.support.servers import discover
from tests.support.session import Choice, Session


@functools.cache
def discovered() -> tuple[str, ...]:
    """The names of the servers found on this machine."""
    return tuple(source.name for source in discover())


def labels(choice: Choice) -> list[str]:
    """What the real servers of a session are called, in the order of its hosts, before any is started."""
    if not {"redis", "sync", "async"} & set(choice.suts) and not choice.required:
        return []
    urls = [urlsplit(url) for url in choice.urls]
    given = [f"{url.hostname}:{url.port or 6379}" for url in urls]
    given += [Path(binary).name for binary in choice.binaries] + list(choice.images)
    return given or list(discovered())


def once_per_server(metafunc: pytest.Metafunc) -> None:
    """A test that takes a server runs once on each; a visible skip where there is none."""
    if "server" in metafunc.fixturenames:
        found = labels(metafunc.config.stash[SESSION].choice)
        none = pytest.param(0, marks=pytest.mark.skip("no real server was found or chosen"))
        metafunc.parametrize(
            "server", range(len(found)) if found else [none], ids=found or ["no-server"], indirect=True
        )


pytest_generate_tests = once_per_server


@pytest.fixture
def server(request: pytest.FixtureRequest, run: Session) -> Iterator[BaseServer]:
    """A real server with an empty database, its clock at its start."""
    host: BaseServer = [host for host in run.hosts if host.name != "fakeredis"][request.param]
    prepare(host)
    yield host
    host.flush()


@pytest.fixture
def one_server(run: Session) -> Iterator[BaseServer]:
    """The first of the real servers: what a control shows of a check, it shows on any."""
    host = next((host for host in run.hosts if host.name != "fakeredis"), None)
    if host is None:
        pytest.skip("no real server was found or chosen")
    prepare(host)
    yield host
    host.flush()


@pytest.fixture
def replica(server: BaseServer) -> Iterator[BaseServer]:
    """A replica of the server that is in step with it."""
    with replica_of(server) as follower:
        yield follower


@pytest.fixture(scope="session")
def scripts_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the scripts of designs are laid out."""
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture
def judge(server: BaseServer, scripts_folder: Path) -> Judge:
    """The judge of each server."""
    return Judge(server, scripts_folder)
