"""The evidence is taken from calls that a right script answers right, keys of other types among them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from model.scope import SCOPES
from tests.exploration.refine import Executor, package_lua
from tests.mutants import evidence
from tests.mutants.kill import scripts_of
from tests.mutants.test_kill import changed
from tests.support.designs import NAMES
from tests.support.servers import discover
from tests.support.witness import Host, LuaFiles


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """A small search."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "SCOPE", SCOPES["small"])
        patch.setattr(evidence, "OPERATIONS", 5_000)
        evidence.searched.cache_clear()
        yield
    evidence.searched.cache_clear()


@pytest.fixture(scope="module")
def server() -> Iterator[Host]:
    """The first that there is."""
    with discover()[0].start() as host:
        yield host


def test_right_scripts_agree(server: Host) -> None:
    """In every call of both searches; else a mutant would be refuted by what it did not do."""
    executor = Executor(server, package_lua())
    assert [str(one) for name in NAMES for one in executor.run(evidence.searched()[name])] == []


def test_all_kinds_of_calls_are_there() -> None:
    """Each script was called often, on queues whose keys were dropped, spoilt and of another type, too."""
    searched = evidence.searched()
    assert all(len(searched[name]) > 300 for name in NAMES)
    states = [one.before for name in NAMES for one in searched[name]]
    assert any(None in state.queues.values() for state in states)
    assert any(lock.value is None for state in states for lock in state.locks.values())
    assert any(value not in (b"0", b"1", b"2", b"3", b"4") for state in states for value in state.prio.values())


def test_a_wrong_script_is_seen(server: Host) -> None:
    """A mutant that changes something disagrees somewhere."""
    with scripts_of(changed("ack", "left > 1", "left > 2")) as folder:
        assert next(Executor(server, LuaFiles(folder)).run(evidence.searched()["ack"]), None) is not None
