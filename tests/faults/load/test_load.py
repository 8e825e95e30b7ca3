"""What is done to workers, connections and servers under load: nothing is lost, and each promise is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.faults.judge import DESIGNS, edited
from tests.faults.load import injury
from tests.faults.load.account import Account
from tests.faults.load.injury import Scene, real_time
from tests.faults.load.run import expect_kept, load
from tests.faults.proxy import Proxy
from tests.support.designs import lay_over, package_scripts
from tests.support.running import BaseServer

Injury = Callable[[Scene], None]
IMPATIENT = 1.0
"""Seconds after which a control's queue counts as stuck."""
SETTLE_SECONDS = 0.3


@dataclass(frozen=True)
class Fault:
    """What is done, how often, and how far apart (seconds, on the average)."""

    injuries: tuple[Injury, ...]
    times: int
    pause: float = 0.02
    settings: dict[str, Any] = field(default_factory=dict)


FAULTS = {
    "workers are killed": Fault((injury.kill_worker,), 15),
    "connections are killed": Fault((injury.kill_connection,), 100, 0.01),
    "scripts are forgotten": Fault((injury.flush_scripts,), 200, 0.005),
    "memory runs out and comes back": Fault((injury.squeeze,), 20),
    "a script keeps the server busy": Fault((injury.keep_busy,), 6),
    "the clock jumps": Fault((injury.jump_ahead, injury.jump_back), 12),
    "the network is cut": Fault((injury.lose_request, injury.lose_reply), 50, 0.01),
    "the network is slow": Fault((injury.hold_replies,), 6, settings={"timeout": 0.1}),
}


@contextmanager
def scene(server: BaseServer, **settings: Any) -> Iterator[Scene]:
    """A load that reaches the server through a proxy; in real time."""
    with real_time(server), Proxy(server.url) as proxy, load(server.url, proxy.url, **settings) as under_way:
        yield Scene(server, under_way, proxy)


def suffer(server: BaseServer, fault: Fault, patience: float | None = None, **settings: Any) -> Account:
    """A load that this is done to; what came of it."""
    with scene(server, **fault.settings, **settings) as under_way:
        under_way.repeat(fault.times, *fault.injuries, pause=fault.pause)
        time.sleep(SETTLE_SECONDS)  # with nothing in the way
        return under_way.load.account(*([] if patience is None else [patience]))


def needs_a_clock(server: BaseServer, name: str) -> None:
    """Skips the test if its server's clock cannot be told what to show."""
    if name == "the clock jumps" and not server.clock.exact:
        pytest.skip(f"{server.name}: its clock does not jump: {server.clock.reason}")


@pytest.mark.parametrize("name", FAULTS)
def test_every_promise_is_kept(server: BaseServer, name: str) -> None:
    """FAULT-1, FAULT-2, FAULT-4, FAULT-5, FAIL-8: all that is published is acked, in order; no key is left."""
    needs_a_clock(server, name)
    expect_kept(suffer(server, FAULTS[name]))


Lay = Callable[[Path], Path]
"""Lays the scripts of a control out, and says where."""


def pops_at_claim(folder: Path) -> Path:
    """Scripts whose claim takes the message off its list."""
    for name, source in package_scripts().items():
        old, new = "local payload = redis.pcall('LINDEX', q, '0')", "local payload = redis.pcall('LPOP', q)"
        (folder / name).write_text(edited(source, old, new) if name == "claim.lua" else source)
    return folder


def of_design(name: str) -> Lay:
    """The scripts of a known-bad design."""

    def lay(folder: Path) -> Path:
        lay_over(DESIGNS[name], folder / name)
        return folder / name

    return lay


CONTROLS: list[tuple[str, str, Lay | str]] = [
    ("workers are killed", "lost", pops_at_claim),
    ("connections are killed", "lost", pops_at_claim),
    ("memory runs out and comes back", "lost", "takes-errors-for-done"),
    ("a script keeps the server busy", "lost", "takes-errors-for-done"),
    ("the clock jumps", "two at once", of_design("ack-without-fence")),
    ("the clock jumps", "out of order", of_design("nack-to-tail")),
    ("the network is cut", "lost", pops_at_claim),
    ("the network is slow", "lost", pops_at_claim),
]
"""What is done, what must be found, and without what: other scripts, or a client with a flaw."""


@pytest.mark.parametrize(("name", "found", "without"), CONTROLS, ids=[f"{each[0]}, {each[1]}" for each in CONTROLS])
def test_undone(one_server: BaseServer, tmp_path: Path, name: str, found: str, without: Lay | str) -> None:
    """Each of these loads finds out scripts, or a client, without what it relies on."""
    needs_a_clock(one_server, name)
    settings = {"flaw": without} if isinstance(without, str) else {"scripts": str(without(tmp_path))}
    assert found in suffer(one_server, FAULTS[name], IMPATIENT, **settings).wrong


def test_a_client_that_never_reloads_is_found_out(one_server: BaseServer) -> None:
    """A load whose clients take NOSCRIPT for an error of the caller's does nothing."""
    account = suffer(one_server, FAULTS["scripts are forgotten"], IMPATIENT, flaw="never-reloads")
    assert account.outcomes()["refused"] > 10
    with pytest.raises(AssertionError, match="refused"):
        expect_kept(account)
