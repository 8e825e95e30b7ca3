"""The headers of the scripts say what the scripts take and what the library sends."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from model.operation import ARGV
from redisq.errors import RedisqError
from redisq.scripts import NAMES, Call, Calls
from tests.support.lua_header import Header, HeaderError, parse, parse_text

SOURCES = {name: (files("redisq") / "lua" / f"{name}.lua").read_text(encoding="utf-8") for name in NAMES}
HEADERS = {name: parse_text(source, f"{name}.lua") for name, source in SOURCES.items()}
SOUND = """\
-- redisq peek: looks at one thing.
-- KEYS 1 {prefix}:prio: routes in a cluster, never read
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 now: ms; empty: the server's clock
-- REPLY 1: seen
-- REPLY nil: not seen
-- ERROR REDISQ_BADARG: an argument is not of its form
-- COST O(1): 1 command
return 1
"""
# What to change in the sound header, the line an error names, and what it says.
BROKEN = {
    "no title": ("-- redisq peek: looks at one thing.\n", "", 1, "begins with '-- redisq NAME: sentence.'"),
    "no full stop": ("thing.", "thing", 1, "begins with '-- redisq NAME: sentence.'"),
    "unknown part": ("-- COST O", "-- NOTE a\n-- COST O", 8, "begins with one of KEYS, ARGV"),
    "order": (
        "-- KEYS 1 {prefix}:prio: routes in a cluster, never read\n-- ARGV 1",
        "-- ARGV 1",
        7,
        "no line '-- KEYS i",
    ),
    "late part": ("-- COST", "-- ARGV 3 px: ms\n-- COST", 8, "ARGV stands after ERROR"),
    "gap": ("ARGV 2", "ARGV 3", 4, "ARGV 3 stands where ARGV 2 is due"),
    "number from 0": ("ARGV 1", "ARGV 0", 3, "not of the form '-- ARGV i name: form"),
    "twice": ("now: ms", "prefix: ms", 4, "ARGV prefix stands twice"),
    "no form": ("prefix: bytes, not empty", "prefix: not empty", 3, "a form that begins with bytes"),
    "unknown reply": ("REPLY 1:", "REPLY true:", 5, "an integer, or one of integer, array and nil"),
    "no text": ("REPLY nil: not seen", "REPLY nil:", 6, "not of the form '-- REPLY what: text"),
    "lower-case code": ("ERROR REDISQ_BADARG", "ERROR badarg", 7, "not of the form '-- ERROR CODE: text'"),
    "no cost": ("-- COST O(1): 1 command\n", "", 7, "no line '-- COST text'"),
    "two costs": ("-- COST O(1)", "-- COST none\n-- COST O(1)", 9, "COST stands once"),
    "trailing space": ("1 command\n", "1 command \n", 8, "not of the form '-- COST text'"),
}


def encoded() -> dict[str, tuple[Call[object], dict[str, bytes]]]:
    """A call of each script, and what each argument must then be, no two of one call alike."""
    calls = Calls(b"the-prefix", lambda: 111.0, 17, "arrival")
    values = {
        "prefix": b"the-prefix",
        "group": b"the-group",
        "payload": b"the-payload",
        "priority": b"3",
        "min_priority": b"2",
        "score": b"111000",
        "now": b"111000",
        "px": b"222000",
        "delay": b"333000",
        "K": b"17",
    }
    claim = calls.claim(222.0, 2, "worker")
    lease = claim.read([b"the-group", b"the-payload"])
    assert lease is not None
    made: dict[str, Call[object]] = {
        "publish": calls.publish("the-group", "the-payload", 3),
        "claim": claim,
        "ack": calls.ack(lease),
        "nack": calls.nack(lease, 333.0),
        "extend": calls.extend(lease, 222.0),
    }
    return {name: (call, {**values, "token": lease.token.encode()}) for name, call in made.items()}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The name of each script in turn."""
    return str(request.param)


@pytest.fixture
def header(name: str) -> Header:
    """The header of the script."""
    return HEADERS[name]


def test_header_names_its_script(name: str, header: Header) -> None:
    """The header of each script has its file's name and one key that only routes."""
    assert header.name == name
    assert [(key.name, key.text) for key in header.keys] == [("{prefix}:prio", "routes in a cluster, never read")]


def test_header_binds_the_locals(name: str, header: Header) -> None:
    """The first statement binds each ARGV, in order, to a local of the header's name."""
    statement = SOURCES[name].split("\n")[header.lines]
    match = re.fullmatch(r"local ([\w, ]+) = (ARGV\[1\](?:, ARGV\[\d\])*(?: or '0')?)", statement)
    assert match, statement
    assert tuple(match[1].split(", ")) == header.argv_names
    assert re.findall(r"ARGV\[(\d)\]", match[2]) == [str(position) for position in range(1, len(header.argv) + 1)]


def test_header_agrees_with_the_refusals(name: str, header: Header) -> None:
    """A call of the wrong length is told all names in order, and each argument of a form is refused by its own name."""
    takes = re.findall(r"'(\w+) takes ([\d or]+): ([^']+)'", SOURCES[name])
    total = len(header.argv)
    # Only publish has an argument that may be absent, the last.
    listed, lengths = ", ".join(header.argv_names), str(total)
    if name == "publish":
        listed, lengths = listed.replace(", score", " [, score]"), f"{total - 1} or {total}"
    assert takes == [(name, lengths, listed)]
    refused = re.findall(r"\bbad\('(\w+)', ", SOURCES[name])
    assert refused == ["ARGV", *(argument for argument in header.argv_names if argument != "payload")]


def test_header_agrees_with_the_encoder(name: str, header: Header) -> None:
    """The library sends the key, and each argument at the place where the header names it."""
    call, values = encoded()[name]
    assert call.args[0].decode() == header.keys[0].name.format(prefix="the-prefix")
    assert list(call.args[1:]) == [values[argument] for argument in header.argv_names]
    assert len(set(call.args)) == len(call.args), "arguments that are alike could change places unseen"


def test_header_agrees_with_the_model(name: str, header: Header) -> None:
    """The model's table of ARGV is that of the header."""
    assert ARGV[name] == header.argv_names


def test_header_names_every_reply(name: str, header: Header) -> None:
    """The library reads each reply that the header names, and refuses every other kind."""
    samples = {"1": 1, "0": 0, "integer": 7, "array": [b"g", b"p"], "nil": None}
    call = encoded()[name][0]
    named = {reply.name for reply in header.replies}
    # An integer is also 0 and 1.
    named |= {"0", "1"} if "integer" in named else set()
    for kind, sample in samples.items():
        if kind in named:
            call.read(sample)
        else:
            with pytest.raises(RedisqError):
                call.read(sample)


def test_header_names_our_error(header: Header) -> None:
    """Every script has the one error code that is the same everywhere."""
    assert header.errors[0].name == "REDISQ_BADARG"


def test_sound_header_is_parsed() -> None:
    """A header of the grammar is read into its parts."""
    header = parse_text(SOUND, "peek.lua")
    assert header.argv_names == ("prefix", "now")
    assert [(reply.name, reply.text, reply.line) for reply in header.replies] == [
        ("1", "seen", 5),
        ("nil", "not seen", 6),
    ]
    assert (header.sentence, header.cost, header.lines) == ("looks at one thing.", "O(1): 1 command", 8)


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_header_is_refused(broken: str) -> None:
    """A header that is not of the grammar is refused with the file, the line and what is due."""
    old, new, line, message = BROKEN[broken]
    assert SOUND.count(old) == 1
    with pytest.raises(HeaderError) as caught:
        parse_text(SOUND.replace(old, new), "peek.lua")
    assert str(caught.value).startswith(f"peek.lua:{line}: ")
    assert message in str(caught.value)


def test_file_is_named_as_its_header(tmp_path: Path) -> None:
    """A header in a file of another name is refused."""
    (tmp_path / "peek.lua").write_text(SOUND)
    assert parse(tmp_path / "peek.lua").name == "peek"
    (tmp_path / "look.lua").write_text(SOUND)
    with pytest.raises(HeaderError, match=r"look\.lua:1: the header is that of peek\.lua"):
        parse(tmp_path / "look.lua")
