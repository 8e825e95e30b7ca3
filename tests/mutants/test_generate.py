"""The generator changes one thing at a time, and everything that the list of changes says."""

from __future__ import annotations

import pytest

from tests.mutants.generate import mutants
from tests.mutants.kill import compiles
from tests.support.designs import NAMES, package_scripts


def changes(source: str) -> set[tuple[str, str]]:
    """What is done to a source, and the line that comes of it."""
    return {(mutant.what, mutant.diff[1]) for mutant in mutants("claim", source)}


@pytest.mark.parametrize(
    ("source", "what", "line"),
    [
        ("if a < b then return 1 end", "< becomes <=", "if a <= b then return 1 end"),
        ("if a == b then return 1 end", "the condition is negated", "if not (a == b) then return 1 end"),
        ("if a == b then return 1 end", "a return is dropped", "if a == b then do end end"),
        ("local x = a and b", "the left operand is dropped", "local x = b"),
        ("local x = 16", "16 becomes 15", "local x = 15"),
        ("redis.call('RPUSH', q, v)", "'RPUSH' becomes 'LPUSH'", "redis.call('LPUSH', q, v)"),
        ("redis.call('RPUSH', q, v)", "a statement is dropped", ""),
        ("redis.call('RPUSH', q, v)", "two arguments are swapped", "redis.call('RPUSH', v, q)"),
        ("redis.call('RPUSH', q, v)", "one more TIME", "redis.call('TIME'); redis.call('RPUSH', q, v)"),
        ("redis.call('SET', k, v, 'PX', px)", "PX is dropped", "redis.call('SET', k, v)"),
        ("redis.call('SET', k, v, 'PX', px)", "'PX' becomes 'EX'", "redis.call('SET', k, v, 'EX', px)"),
        ("redis.call('ZADD', k, 'NX', s, m)", "NX is dropped", "redis.call('ZADD', k, s, m)"),
        ("local x = ARGV[2]", "ARGV[2] becomes ARGV[3]", "local x = ARGV[3]"),
        ("local x = string.find(K, '^[1-9]%d?$')", "pattern: $' becomes '", "local x = string.find(K, '^[1-9]%d?')"),
        ("return { group, payload }", "fields swapped", "return { payload, group }"),
        ("while more do break end", "a statement is dropped", "while more do  end"),
    ],
)
def test_a_change(source: str, what: str, line: str) -> None:
    """A change of that kind is among the mutants of a source."""
    assert (what, line) in changes(source)


def test_two_commands_change_places() -> None:
    """Two commands that follow each other are tried in the other order."""
    source = "redis.call('DEL', a)\nredis.call('LPOP', b)\n"
    (swapped,) = [mutant for mutant in mutants("ack", source) if mutant.what == "two commands are swapped"]
    assert swapped.source == "redis.call('LPOP', b)\nredis.call('DEL', a)\n"


def test_the_texts_of_errors_are_left_alone() -> None:
    """Only the name that an error begins with is part of the contract."""
    assert not changes("return bad('K', 'must be 1 to 99')") & {("the reply becomes nil", "return nil")}
    assert all("99" in line or "do end" in line for _, line in changes("return bad('K', 'must be 1 to 99')"))


@pytest.mark.parametrize("name", NAMES)
def test_the_mutants_of_a_script(name: str) -> None:
    """Each is another script, has an id of its own, and its source differs in the lines that it says."""
    source = package_scripts()[f"{name}.lua"]
    found = [mutant for mutant in mutants(name, source) if compiles(mutant.source)]
    assert len({mutant.source for mutant in found} | {source}) == len(found) + 1
    assert len({mutant.id for mutant in found}) == len(found) > 100
    assert all(mutant.diff[1] in mutant.source or not mutant.diff[1] for mutant in found)


def test_what_is_no_lua() -> None:
    """A change that does not compile is no mutant."""
    assert compiles("return 1")
    assert not compiles("return return")
