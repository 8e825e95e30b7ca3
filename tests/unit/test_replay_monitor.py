"""Lines of MONITOR: parsed from raw bytes, whatever the arguments hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.replay.monitor import Entry, MonitorError, entries, line, parse
from tests.support.replay.units import LAG_US, SLACK_US, Unit, Units

ENTRY = Entry(1339518083107412, 0, "127.0.0.1:60866", (b"GET", b"p:lock:g"))


def test_line_of_the_manual() -> None:
    """Time, database, client and arguments; the plus of the protocol may stand before it."""
    text = b'1339518083.107412 [0 127.0.0.1:60866] "GET" "p:lock:g"'
    assert parse(text) == parse(b"+" + text + b"\r\n") == ENTRY


@pytest.mark.parametrize("source", ["lua", "[::1]:6379", "unix:/run/redis.sock"])
def test_sources(source: str) -> None:
    """A script, an address of IPv6 and a socket in the file system are told from the arguments."""
    entry = Entry(1_000_000, 3, source, (b"DEL", b"] [0"))
    assert parse(line(entry)) == entry


@given(words=st.lists(st.binary(), min_size=1, max_size=4))
def test_any_bytes(words: list[bytes]) -> None:
    """Every argument comes back as it was, quotes, backslashes, line ends and bytes beyond ASCII included."""
    entry = Entry(1_800_000_000_000_001, 0, "lua", tuple(words))
    assert parse(line(entry)) == entry
    assert b"\n" not in line(entry)


def test_named_escapes() -> None:
    """The escapes that Redis writes by a letter."""
    assert parse(b'1.000000 [0 lua] "\\a\\b\\t\\n\\r\\"\\\\\\x00"') == Entry(1_000_000, 0, "lua", (b'\a\b\t\n\r"\\\0',))


@pytest.mark.parametrize("text", [b"", b"OK", b"+OK\r\n", b"# a comment"])
def test_lines_that_say_nothing(text: bytes) -> None:
    """What begins MONITOR, and comments of a file, are no entries."""
    assert parse(text) is None


def test_a_line_that_is_none_is_named() -> None:
    """A file that is something else is refused by the number of the line."""
    with pytest.raises(MonitorError, match=r"line 2: no line of MONITOR: b'\* what'"):
        list(entries([line(ENTRY), b"* what"]))


def unit_of(*commands: tuple[int, str, str]) -> list[Unit]:
    """The units of lines at these microseconds."""
    units = Units()
    found = [units.add(Entry(at, 0, source, tuple(w.encode() for w in text.split()))) for at, source, text in commands]
    return [unit for unit in [*found, units.end()] if unit is not None]


def test_a_script_and_its_commands_are_one_unit() -> None:
    """Commands of Lua belong to the script before them; its argv is told without the keys."""
    script, after = unit_of(
        (10, "c", "EVALSHA AB12 1 p:prio p g t"), (11, "lua", "GET x"), (12, "lua", "DEL x"), (20, "c", "PING")
    )
    assert [entry.name for entry in script.commands] == [b"GET", b"DEL"]
    assert (script.sha, script.argv) == ("ab12", (b"p", b"g", b"t"))
    assert (after.is_script, after.sha, after.commands[0].name) == (False, "", b"PING")


def test_commands_before_the_first_script() -> None:
    """The rest of a script that began before the first line is left out."""
    assert [unit.first.name for unit in unit_of((1, "lua", "DEL x"), (2, "c", "PING"))] == [b"PING"]


def test_a_command_ran_between_the_lines_around_it() -> None:
    """A server writes the line before the command or after it, so the lines around it bound its clock."""
    first, second, third = unit_of((10**6, "c", "A"), (10**6 + 5_000, "c", "B"), (10**9, "c", "C"))
    assert second.span.first_ms == (10**6 - LAG_US) // 1000
    assert second.span.last_ms == (10**6 + 5_000 + SLACK_US) // 1000
    assert first.span.last_ms == 1005
    assert third.span.first_ms == (10**9 - SLACK_US) // 1000
