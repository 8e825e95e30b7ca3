"""The known-bad designs fit the scripts, run, and say what they get wrong."""

from __future__ import annotations

import re
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any

import fakeredis
import pytest
import redis

from tests.support.designs import (
    FOLDER,
    NAMES,
    REWRITES,
    Design,
    DesignError,
    changed,
    designs,
    equivalents,
    lay_over,
    load_nack,
    package_scripts,
)
from tests.support.servers import Server

DESIGNS = {design.name: design for design in [*designs(), *equivalents()]}
ORIGINAL = {
    "ack.lua": "9b9396a8fc78961836de7de87026866ff107cb962f6b77c57de97b0eb6f6d69e",
    "claim.lua": "82306a798bf054d4533f1eebe56855a8b60da7a6d305ddc6a2db54e203e00e6f",
    "publish.lua": "e32d003176b4def218971468ca20372ae6a23458611cc16d53c50e371dc1031d",
}
EDIT = '[[edit]]\nfile = "ack.lua"\nold = "{}"\nnew = "{}"\n'
README = "A sentence.\nConvicted by E2.\n\nbreaks: E2\nshows: plain\n"


@pytest.fixture(params=DESIGNS)
def design(request: pytest.FixtureRequest) -> Design:
    """Each design in turn, the equivalents too."""
    return DESIGNS[request.param]


def make(tmp_path: Path, name: str = "some-design", readme: str = README, **files: str) -> list[Design]:
    """A folder of one design, as `designs` reads it. The files are named `edits_toml` and so on."""
    folder = tmp_path / name
    folder.mkdir()
    for file, text in {"README_md": readme, **files}.items():
        (folder / file.replace("_", ".")).write_text(text)
    return designs(tmp_path)


def test_every_folder_is_a_design() -> None:
    """No folder is passed over, and no name stands twice."""
    folders = {path.name for path in [*FOLDER.iterdir(), *(FOLDER / "equivalent").iterdir()] if path.is_dir()}
    assert folders - {"equivalent", "__pycache__"} == set(DESIGNS)
    assert len(DESIGNS) == len(designs()) + len(equivalents())


def test_designs_break_something_and_equivalents_nothing() -> None:
    """A design names what it breaks, and an equivalent nothing; there are several of these."""
    assert all(design.breaks for design in designs())
    assert not any(design.breaks for design in equivalents())
    assert len(equivalents()) >= 3


def test_every_fault_of_the_scripts_has_a_design_of_its_own() -> None:
    """Each correction of the scripts and each operation is broken by a design beside the original."""
    broken = {word for design in designs() if design.name != "original" for word in design.breaks}
    # E8 is the client's.
    assert broken == {f"E{number}" for number in range(1, 17) if number != 8} | set(NAMES)


def test_original_is_unchanged() -> None:
    """The original design's scripts are byte for byte those that were measured."""
    folder = DESIGNS["original"].path
    assert {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.lua")} == ORIGINAL


def test_design_is_laid_over(design: Design, tmp_path: Path) -> None:
    """A design gives all five scripts, and they differ from the package's where it changes something."""
    folder = lay_over(design, tmp_path / "lua")
    laid = {path.name: path.read_text() for path in folder.iterdir()}
    ours = package_scripts()
    assert laid.keys() == ours.keys()
    assert (laid != ours) == (design.name != "two-step-nack")


def test_design_loads_on_a_server(design: Design, tmp_path: Path, server: Server) -> None:
    """Every script of a design compiles on a real server."""
    lay_over(design, tmp_path)
    with server.client() as client:
        for name in NAMES:
            assert client.script_load((tmp_path / f"{name}.lua").read_bytes())


@pytest.mark.parametrize("now", ["", "1000"])
def test_design_runs(design: Design, now: str, tmp_path: Path) -> None:
    """Every script of a design does its work where its fault does not matter."""
    lay_over(design, tmp_path)
    client: Any = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    # The original knows no empty `now`.
    now = "1000" if design.name == "original" else now

    def run(name: str, *argv: str) -> object:
        source = (tmp_path / f"{name}.lua").read_bytes()
        return client.execute_command("EVAL", source, 1, "p:prio", "p", *argv)

    assert run("publish", "g", "only", "0", "0") == 1
    assert run("claim", now, "30000", "A", "8", "0") == [b"g", b"only"]
    assert run("extend", "g", "A", now, "60000") == 1
    assert run("nack", "g", "A", now, "0") == 1
    assert run("claim", now, "30000", "B", "8", "0") == [b"g", b"only"]
    assert run("ack", "g", "B", now) == 1
    assert run("publish", "h", "parked", "0", "0") == 1
    assert run("claim", now, "30000", "C", "8", "0") == [b"h", b"parked"]
    assert run("nack", "h", "C", now, "500") == 1


@pytest.mark.parametrize("name", ["original", "two-step-nack"])
def test_nack_over_round_trips(name: str) -> None:
    """A nack over round trips does its work when nobody comes between them."""
    client, nack = leased("A"), load_nack(DESIGNS[name])
    assert finish(nack(client, b"p", b"g", b"B", 1000, 0)) == (["GET"], 0)
    assert finish(nack(client, b"p", b"g", b"A", 1000, 500)) == (["GET", "HGET", "ZADD", "SET"], 1)
    assert client.get("p:lock:g") == (b"A" if name == "original" else b"parked")
    assert 0 < client.pttl("p:lock:g") <= 500
    assert client.zscore("p:ready:2", "g") == 1500
    client = leased("A")
    assert finish(nack(client, b"p", b"g", b"A", 1000, 0)) == (["GET", "HGET", "ZADD", "DEL"], 1)
    assert client.exists("p:lock:g") == 0
    assert client.zscore("p:ready:2", "g") == 0


@pytest.mark.parametrize("name", ["original", "two-step-nack"])
def test_nack_over_round_trips_shows_e1(name: str) -> None:
    """Another worker that claims after the token was read loses its lock to the rest of the nack."""
    client = leased("A")
    steps = load_nack(DESIGNS[name])(client, b"p", b"g", b"A", 1000, 0)
    assert [next(steps), next(steps)] == ["GET", "HGET"]
    client.set("p:lock:g", "B", px=30_000)
    assert finish(steps)[1] == 1
    assert client.exists("p:lock:g") == 0


def leased(token: str) -> redis.Redis:
    """A fakeredis with one group of tier 2 leased."""
    client = fakeredis.FakeRedis(server=fakeredis.FakeServer())
    client.rpush("p:q:g", "message")
    client.hset("p:prio", "g", "2")
    client.zadd("p:ready:2", {"g": 31_000})
    client.set("p:lock:g", token, px=30_000)
    return client


def finish(steps: Generator[str, None, int]) -> tuple[list[str], int]:
    """The round trips that are left, and the reply."""
    names = []
    while True:
        try:
            names.append(next(steps))
        except StopIteration as done:
            return names, done.value


def test_rewrites_change_what_they_say() -> None:
    """Reformatted scripts have no comments and other lines; renamed ones have none of the names, and the same lines."""
    ours = package_scripts()["claim.lua"]
    reformatted, renamed = REWRITES["reformatted"](ours), REWRITES["renamed"](ours)
    assert "--" not in reformatted
    assert len(reformatted.splitlines()) < len(ours.splitlines()) / 2
    assert len(renamed.splitlines()) == len(ours.splitlines())
    code = re.sub(r"--.*|'[^']*'|\"[^\"]*\"", "", renamed)
    assert not re.search(r"\b(prefix|now|px|K|look|bad|best|ready|servers_clock|_)\b", code)
    assert re.findall(r"--.*|'[^']*'", ours) == re.findall(r"--.*|'[^']*'", renamed)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"edits_toml": EDIT.format("no such text", "")}, "edit 1 of edits.toml: this stands 0 times in ack.lua"),
        ({"edits_toml": EDIT.format("redis.call('DEL', lock)", "")}, "this stands 2 times in ack.lua, not once"),
        ({"edits_toml": EDIT.format("return 1", "return 1")}, "or is not changed"),
        ({"edits_toml": EDIT.format("return 1", "").replace("ack", "peek")}, "peek.lua is none of the scripts"),
        ({"edits_toml": EDIT.format("return 1", ""), "ack_lua": "return 1"}, "or is replaced as a whole"),
        ({"edits_toml": EDIT.format("return 1", "").replace("new", "now")}, "an edit has file, old and new"),
        ({"peek_lua": "return 1"}, "peek.lua is none of the scripts"),
        ({}, "it changes nothing"),
    ],
)
def test_design_that_does_not_fit_is_refused(files: dict[str, str], message: str, tmp_path: Path) -> None:
    """An edit whose text does not stand exactly once, or a file that is no script, is an error that names it."""
    (made,) = make(tmp_path, **files)
    with pytest.raises(DesignError) as caught:
        changed(made, package_scripts())
    assert str(caught.value).startswith("some-design: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("readme", "message"),
    [
        ("", "begins with a sentence"),
        (README.replace("A sentence.", "A heading"), "begins with a sentence"),
        (README.replace("breaks: E2", ""), "has a line breaks:"),
        (README.replace("E2\nshows", "E17\nshows"), "breaks: E17 is no correction and no operation"),
        (README.replace("plain", "somewhere"), "shows: one of plain, round-trips, maxmemory, acl, nowhere"),
        (README.replace("plain", "nowhere"), "nowhere is for what breaks nothing"),
        (README.replace("breaks: E2", "breaks: nothing"), "nowhere is for what breaks nothing"),
    ],
)
def test_readme_that_says_too_little_is_refused(readme: str, message: str, tmp_path: Path) -> None:
    """A design's README has its sentence, what it breaks and where that shows."""
    with pytest.raises(DesignError) as caught:
        make(tmp_path, readme=readme)
    assert str(caught.value).startswith("some-design: ")
    assert message in str(caught.value)
