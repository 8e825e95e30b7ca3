"""Each check of the spec can fail: ports that it must convict, on a real server. Right ports are in ``test_zoo.py``."""

from __future__ import annotations

import re
import sys

import pytest

from model.operation import PREFIX
from tests.support.cases import CHECKS as OF_THE_SPEC
from tests.support.designs import designs
from tests.support.port.checks import CHECKS
from tests.support.port.checks.rig import Rig
from tests.support.port.witness import Adapter, Port
from tests.support.running import BaseServer
from tests.support.trial import Divergence

# The check, the port, what the report says, and of which kind the failure is.
CONTROLS = [
    *(
        ("E5-1", design.name, "the server is full from step ", "reply")
        for design in designs()
        if design.shows == "maxmemory"
    ),
    *(("E15-2", design.name, ", refused ", "check") for design in designs() if design.shows == "acl"),
    ("E15-2", "SwallowsRefusals", "acked, and the message is still there|1 messages stored", "check"),
    ("E15-2", "DiesOfRefusals", "does not answer publish: crash: the adapter ended with exit code 3", "crash"),
    ("E15-2", "IgnoresTheUser", "does the port take the user and the password from the URL", "check"),
    ("E1-2", "two-step-nack", 'lock:g: expected "B" until', "check"),
    ("E1-2", "LeavesTheServer", "sent no command to the server at the URL that open named", "check"),
    ("CLAIM-7d", "ClaimInSteps", "another worker was given the group, and the port as well", "check"),
    ("FAIL-8a", "KeepsShas", "publish answers .*, asked of a server that has forgotten the scripts", "check"),
    ("FAIL-9a", "SwallowsRefusals", "answered LOADING|answered READONLY; it answers 1, and nothing was done", "check"),
    (
        "FAIL-9a",
        "FindsNothing",
        "claim: its command 1, EVAL, is answered LOADING; it answers nil, and nothing",
        "check",
    ),
    ("FAIL-9a", "KeepsShas", "is answered NOSCRIPT; the caller is told", "check"),
    ("FAIL-9a", "TriesTwice", "it leaves what no number of calls of its script would", "check"),
    *(
        (check, "LeavesTheServer", "publish sent no command to the server at the URL that open named", "check")
        for check in ("FAIL-9a", "FAIL-10a", "FAIL-10b", "FAIL-10c")
    ),
    ("FAIL-10a", "Hopes", "is lost with its connection; it answers 1, and nothing was done", "check"),
    ("FAIL-10a", "OneConnection", "the next calls on the same client fail", "check"),
    ("FAIL-10b", "PublishInSteps", "it leaves what no number of calls of its script would", "check"),
    ("FAIL-10c", "OneConnection", "the next calls on the same client fail", "check"),
    ("PUBLISH-1c", "PublishInSteps", "INV-INDEX|INV-TIER", "check"),
    ("CLAIM-7c", "ClaimInSteps", "held it at once", "check"),
    ("CLAIM-7c", "lpush", "was acked before", "check"),
    ("CLAIM-7c", "ack-without-fence", "when its lease had ended|acked twice|held it at once", "check"),
    ("CLAIM-7c", "lock-without-px", "when its lease had ended", "check"),
    ("CLAIM-7c", "prio-kept-on-drain", "keys stay: ", "check"),
]


@pytest.mark.parametrize(("check", "name", "says", "kind"), CONTROLS, ids=[f"{c[0]}-{c[1]}" for c in CONTROLS])
def test_check_convicts(host: BaseServer, check: str, name: str, says: str, kind: str) -> None:
    """A port with that fault fails the check, and the report says what it did, with the steps that led to it."""
    port = Port(Adapter(f"{sys.executable} -m tests.ports.controls {name}"), host)
    try:
        port.adapter.start()
        port.open(PREFIX)  # as after the cases that came before
        with Rig(port) as rig, pytest.raises(Divergence) as found:
            CHECKS[check](rig)
    finally:
        port.adapter.end()
        port.client.close()
    failure = found.value.failure
    assert re.search(says, failure.report), failure.report
    assert failure.kind == kind
    assert failure.steps or "keys stay" in says or check == "CLAIM-7c"


def test_every_check_has_a_control() -> None:
    """A check that cannot fail is none."""
    assert {control[0] for control in CONTROLS} == {check.id for check in OF_THE_SPEC}


def test_the_server_is_as_before(host: BaseServer) -> None:
    """Whatever the checks did, no limit and no user of theirs is left."""
    client = host.client()
    limits = {name: client.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
    users = [user for user in client.acl_list() if "without-" in str(user)]
    client.close()
    assert (limits, users) == ({"maxmemory": "0", "maxmemory-policy": "noeviction"}, [])
