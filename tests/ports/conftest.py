"""The server that the tests of ports share."""

from __future__ import annotations

import pytest

from tests.support.options import SESSION
from tests.support.running import BaseServer


@pytest.fixture(scope="module")
def host(pytestconfig: pytest.Config) -> BaseServer:
    """A real server with a virtual clock, of those that the run found."""
    found = [host for host in pytestconfig.stash[SESSION].hosts if host.name != "fakeredis" and host.clock.exact]
    if not found:
        pytest.skip("no server with a virtual clock")
    server: BaseServer = found[0]
    return server
