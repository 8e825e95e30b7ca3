"""Each way to kill a mutant kills one, and none of them kills a script that is right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.exploration.refine import Executor
from tests.mutants.generate import Mutant
from tests.mutants.kill import Hunter, scripts_of, watched
from tests.support.designs import NAMES, package_scripts
from tests.support.fake import FakeHost
from tests.support.servers import discover
from tests.support.witness import LuaFiles

SET = "redis.call('SET', prefix .. ':lock:' .. best[1], token, 'PX', px)\n"
ADD = "redis.call('ZADD', best[3], string.format('%.0f', now + px), best[1])\n"


@pytest.fixture(scope="module")
def hunter() -> Iterator[Hunter]:
    """One, with the first server that there is."""
    with discover()[0].start() as server:
        yield Hunter(server)


def changed(script: str, old: str, new: str) -> Mutant:
    """A script with one text changed, wherever it stands."""
    source = package_scripts()[f"{script}.lua"]
    assert old in source
    return Mutant(script, 0, "", source.replace(old, new), ("", ""))


@pytest.mark.parametrize("script", NAMES)
def test_a_right_script_lives(hunter: Hunter, script: str) -> None:
    """What is not changed at all is killed by nothing, so that nothing here kills whatever it is given."""
    assert hunter.kill(changed(script, "local", "local")) == ""


@pytest.mark.parametrize(
    ("mutant", "killer"),
    [
        (changed("publish", "'RPUSH'", "'LPUSH'"), "case: "),
        (changed("claim", "'GETEX'", "'GET'"), "lint: "),
        (changed("publish", "for t = 0, 4 do", "for t = 0, 5 do"), "cost: "),
        (changed("publish", "'00000'", "'0000'"), "server: "),
        (changed("claim", SET + ADD, ADD + SET), "server: E15"),
    ],
)
def test_a_mutant_is_killed(hunter: Hunter, mutant: Mutant, killer: str) -> None:
    """By the stage that is there for its kind."""
    assert hunter.kill(mutant).startswith(killer)


def test_a_mutant_that_hangs(hunter: Hunter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in an endless loop is killed by the time it takes."""
    monkeypatch.setattr("tests.mutants.kill.SECONDS", 5.0)
    assert hunter.kill(changed("claim", "while more do", "while true do")) == "hang: it never ends"


def test_by_transitions(hunter: Hunter) -> None:
    """What no case shows a transition may."""
    mutant = changed("claim", "ttl >= 0", "ttl >= 1")
    with scripts_of(mutant) as folder:
        assert hunter._by_transitions(mutant, folder) == "transition"


def test_by_the_machine(hunter: Hunter) -> None:
    """Random operations kill as well."""
    mutant = changed("nack", "'parked'", "'Parked'")
    with scripts_of(mutant) as folder:
        assert hunter._by_machine(mutant, folder).startswith("machine: ")


def test_an_alarm_ends_what_hangs() -> None:
    """A script in a loop is interrupted when it calls a command."""
    client = FakeHost().client()
    with pytest.raises(BaseException), watched(0.3) as hangs:  # noqa: B017, PT011
        client.eval("while true do redis.call('PING') end", 0)
    assert hangs == [True]


def test_the_scripts_of_a_mutant() -> None:
    """Four are the package's, the fifth is the mutant."""
    mutant = changed("nack", "'parked'", "'Parked'")
    with scripts_of(mutant) as folder:
        lua = LuaFiles(folder)
        assert lua.source["nack"].decode() == mutant.source
        assert lua.source["ack"].decode() == package_scripts()["ack.lua"]
        assert Executor(FakeHost(), lua).lua is lua
