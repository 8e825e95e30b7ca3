"""Failovers under load: in good order, and to a replica that lags."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from tests.faults.load.account import MAY_SHOW, Account, told
from tests.faults.load.injury import real_time
from tests.faults.load.run import expect_kept, load
from tests.faults.topology import another, promote, replica_of, until
from tests.faults.transports import sync_client
from tests.support.running import BaseServer


@contextlib.contextmanager
def pair(server: BaseServer) -> Iterator[tuple[BaseServer, BaseServer]]:
    """A primary of this kind and its replica, in real time."""
    with another(server) as primary, replica_of(primary) as replica, real_time(primary, replica):
        yield primary, replica


def role(server: BaseServer) -> str:
    """master or slave."""
    with contextlib.closing(sync_client(server.url, 3)) as client:
        answer: Any = client.info("replication")
        return str(answer["role"])


def hand_over(old: BaseServer, new: BaseServer) -> None:
    """The primary and its replica change places, once the replica has all."""
    with contextlib.closing(sync_client(old.url, 3)) as client:
        until(lambda: client.info("replication").get("slave0", {}).get("state") == "online", "the replica is online")
        client.execute_command("FAILOVER")
    until(lambda: (role(old), role(new)) == ("slave", "master"), "the failover is done")


def test_a_failover_in_good_order(server: BaseServer) -> None:
    """FAULT-8, FAIL-9: a primary that becomes a replica, and a primary again, while clients hold leases loses nothing.

    While it is a replica every call of theirs is answered READONLY; the same clients then go on.
    """
    with pair(server) as (primary, replica), load(primary.url) as under_way:
        time.sleep(0.2)
        hand_over(primary, replica)
        time.sleep(0.1)
        hand_over(replica, primary)
        time.sleep(0.3)
        account = under_way.account()
    expect_kept(account)
    read_only = [call for call in account.calls if "READONLY" in call.error or "ReadOnly" in call.error]
    assert read_only
    assert {call.outcome for call in read_only} == {"refused"}


def lagging(server: BaseServer) -> Account:
    """A load whose server is lost, and followed by a replica that had not heard of the last writes."""
    with pair(server) as (primary, replica), load(primary.url) as under_way:
        time.sleep(0.3)
        promote(replica)  # the primary goes on alone for a while
        time.sleep(0.3)
        under_way.stop()
        under_way.direct = replica.url
        return under_way.account(1.0)


def test_a_replica_that_lags(server: BaseServer) -> None:
    """FAULT-8: what a replica that is promoted has not heard of is lost; the account of a load tells."""
    account = lagging(server)
    assert account.lost, told(account.wrong)
    assert account.wrong.keys() <= MAY_SHOW, told(account.wrong)
