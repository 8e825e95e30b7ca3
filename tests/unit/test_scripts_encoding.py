"""Calls: the scripts as files, ARGV as their headers have it, and replies."""

from __future__ import annotations

import hashlib
import time
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from redisq import Lease, RedisqError
from redisq.scripts import NAMES, SCRIPTS, Call, Calls, load, new_token
from tests.support.lua_header import parse

LEASE = Lease("g\udcff", b"p", "worker:1", 30.0, 100.0)


def calls(**options: Any) -> Calls:
    """The encoder with the default options of a transport."""
    return Calls(**{"prefix": b"q\xff", "clock": None, "candidates": 8, "new_groups": "first", **options})


def argv(call: Call[Any]) -> dict[str, bytes]:
    """The ARGV of a call under the names that the header of its script gives them; their number must agree."""
    with as_file(files("redisq") / "lua" / f"{call.script.name}.lua") as path:
        names = parse(path).argv_names
    return dict(zip(names, call.args[1:], strict=True))


def test_scripts_are_the_files_byte_for_byte() -> None:
    """Each script is its file, and its SHA the lower-case one that a server computes."""
    folder = files("redisq") / "lua"
    assert set(SCRIPTS) == {path.name.removesuffix(".lua") for path in folder.iterdir()} == set(NAMES)
    for name, script in SCRIPTS.items():
        assert script.name == name
        assert script.source == (folder / f"{name}.lua").read_bytes()
        assert script.sha == hashlib.sha1(script.source).hexdigest()


def test_a_folder_without_one_of_the_scripts_is_refused(tmp_path: Path) -> None:
    """Another folder of scripts must have all five."""
    for name in NAMES[1:]:
        (tmp_path / f"{name}.lua").write_text("return 1")
    with pytest.raises(FileNotFoundError, match=r"publish\.lua"):
        load(tmp_path)


def test_scripts_of_another_folder_are_run(tmp_path: Path) -> None:
    """The encoder takes other scripts of the same names."""
    for name in NAMES:
        (tmp_path / f"{name}.lua").write_bytes(b"return 1 -- " + name.encode())
    other = calls(scripts=load(tmp_path)).ack(LEASE)
    assert other.by_source[1] == b"return 1 -- ack"
    assert other.by_sha[1] == hashlib.sha1(b"return 1 -- ack").hexdigest()


def test_publish_is_encoded_as_its_header_has_it() -> None:
    """All five ARGV are sent, the score of a new group as 0."""
    call = calls().publish("gr\u00fc\u00df\udcff", "\u00fc", 9)
    assert argv(call) == {
        "prefix": b"q\xff",
        "group": "gr\u00fc\u00df".encode() + b"\xff",
        "payload": b"\xc3\xbc",
        "priority": b"4",
        "score": b"0",
    }
    assert call.group == argv(call)["group"]


def test_claim_is_encoded_as_its_header_has_it() -> None:
    """Visibility is sent in milliseconds, the candidates as K, and the token is the lease's."""
    call = calls(candidates=99).claim(2.007, -7, "worker")
    token = call.read([b"g", b"p"]).token  # type: ignore[union-attr]
    assert argv(call) == {
        "prefix": b"q\xff",
        "now": b"",
        "px": b"2007",
        "token": token.encode(),
        "K": b"99",
        "min_priority": b"0",
    }


def test_settling_is_encoded_as_the_headers_have_it() -> None:
    """Group and token are the lease's; durations are milliseconds."""
    held = {"prefix": b"q\xff", "group": b"g\xff", "token": b"worker:1", "now": b""}
    assert argv(calls().ack(LEASE)) == held
    assert argv(calls().nack(LEASE, 0)) == {**held, "delay": b"0"}
    assert argv(calls().nack(LEASE, 1.5)) == {**held, "delay": b"1500"}
    assert argv(calls().extend(LEASE, 60)) == {**held, "px": b"60000"}


def test_the_one_key_routes_and_strings_of_bytes_are_sent() -> None:
    """KEYS is the hash of priorities; the number of keys is an int, as cluster clients need it; the rest is bytes."""
    for call in (calls().publish("g", "p", 0), calls().claim(1, 0, ""), calls().ack(LEASE)):
        assert call.args[0] == b"q\xff:prio"
        assert call.by_sha == ("EVALSHA", call.script.sha, 1, *call.args)
        assert call.by_source == ("EVAL", call.script.source, 1, *call.args)
        assert all(type(arg) is bytes for arg in call.args)


@pytest.mark.parametrize(
    ("clock", "new_groups", "score", "now"),
    [
        (None, "first", b"0", b""),
        (None, "arrival", b"", b""),
        (lambda: 12.3456, "first", b"0", b"12345"),
        (lambda: 12.3456, "arrival", b"12345", b"12345"),
    ],
)
def test_whose_clock_is_used(clock: Any, new_groups: str, score: bytes, now: bytes) -> None:
    """The server's clock is asked for by an empty argument; a client's is sent. New groups start at 0 or at now."""
    made = calls(clock=clock, new_groups=new_groups)
    assert argv(made.publish("g", "p", 0))["score"] == score
    for call in (made.claim(1, 0, ""), made.ack(LEASE), made.nack(LEASE, 1), made.extend(LEASE, 1)):
        assert argv(call)["now"] == now


def test_the_clock_is_read_for_each_call() -> None:
    """Every call of a client's clock sends its reading of that moment."""
    readings = iter([1.0, 2.0])
    made = calls(clock=lambda: next(readings))
    assert [argv(made.ack(LEASE))["now"] for _ in range(2)] == [b"1000", b"2000"]


def test_tokens_are_unique_and_begin_with_the_worker() -> None:
    """No two claims share a token, even of one worker, and it is neither empty nor the mark of a parked group."""
    tokens = [new_token(worker) for worker in ("", "", "w", "w", "parked")]
    assert len(set(tokens)) == 5
    assert [token.rpartition(":")[0] for token in tokens] == ["", "", "w", "w", "parked"]
    assert all(len(token.rpartition(":")[2]) == 32 for token in tokens)


def test_a_lease_is_what_the_reply_and_the_call_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its deadline counts from before the call was sent, not from the reply."""
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    claim, extend = calls().claim(30, 0, "w"), calls().extend(LEASE, 5)
    now = 129.0
    lease = claim.read([b"g\xff", b"\xfe"])
    assert lease is not None
    assert (lease.group, lease.payload, lease.visibility, lease.deadline) == ("g\udcff", b"\xfe", 30.0, 130.0)
    assert type(lease.visibility) is float
    assert not lease.expired
    renewed = extend.read(1)
    assert renewed == Lease(LEASE.group, LEASE.payload, LEASE.token, 5.0, 105.0)


def test_replies_become_results() -> None:
    """A length, a lease or None, a truth value."""
    made = calls()
    assert made.publish("g", "p", 0).read(3) == 3
    assert made.claim(1, 0, "").read(None) is None
    assert made.ack(LEASE).read(1) is True
    assert made.nack(LEASE, 0).read(0) is False
    assert made.extend(LEASE, 1).read(0) is None


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        *(("publish", reply) for reply in (None, b"1", True, [1])),
        *(("claim", reply) for reply in (1, [b"g"], [b"g", "p"], ["g", b"p"], [b"g", b"p", b"x"], b"gp")),
        *((name, reply) for name in ("ack", "nack", "extend") for reply in (None, 2, -1, b"1", [1])),
    ],
)
def test_a_reply_that_no_script_makes_is_an_error(name: str, reply: object) -> None:
    """A client that changes replies is found out, not believed."""
    made = calls()
    call: dict[str, Call[Any]] = {
        "publish": made.publish("g", "p", 0),
        "claim": made.claim(1, 0, ""),
        "ack": made.ack(LEASE),
        "nack": made.nack(LEASE, 0),
        "extend": made.extend(LEASE, 1),
    }
    with pytest.raises(RedisqError, match="redis-py-compatible") as caught:
        call[name].read(reply)
    assert type(reply).__name__ in str(caught.value)


def test_every_script_has_an_encoder() -> None:
    """An operation is found by its name in the encoder too."""
    assert all(callable(getattr(Calls, name)) for name in NAMES)
    assert tuple(SCRIPTS) == NAMES
