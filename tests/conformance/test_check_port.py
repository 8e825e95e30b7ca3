"""What ``--check-port COMMAND`` runs: the adapter's messages against the schema of the protocol."""

from __future__ import annotations

import pytest

from tests.support.port.check import check
from tests.support.session import Session


def test_check_port(run: Session, pytestconfig: pytest.Config) -> None:
    """Every answer of the adapter is of the form that the protocol gives it."""
    command, timeout_s = pytestconfig.getoption("--check-port"), pytestconfig.getoption("--port-timeout")
    real = [host for host in run.hosts if host.name != "fakeredis"]
    if not real:
        pytest.fail("no server found: name one with --redis-server, --redis-url or --redis-image", pytrace=False)
    host = real[0]
    mistakes = check(command, host.url, host.clock.now_ms(), timeout_s)
    run.checked = f"{command}: every answer is of the protocol"
    if mistakes:
        pytest.fail("\n".join(mistakes), pytrace=False)
