"""The model: its invariants over random operations, the cases of the spec, and that it changes nothing it is given."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from model import State, ack, claim, extend, nack, publish
from model.notation import read, write, write_reply
from model.operation import Delivery, Error, Ok
from model.run import World
from tests.support.campaign import campaign
from tests.support.cases import CASES, Case
from tests.support.trial import Tally
from tests.support.witness import Model
from tests.unit.traces import after

ROOT = Path(__file__).parents[2]


def test_keeps_its_invariants() -> None:
    """Whatever the machine does, no state and no history of the model breaks an invariant."""
    tally = Tally()
    divergence = campaign([Model()], 6_000, tally)
    assert divergence is None, divergence and divergence.report
    assert tally.steps >= 6_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_gives_the_replies_of_the_spec(case: Case) -> None:
    """Each trace of the spec, step by step; and each line reads back as it was written."""
    world = World()
    for operation, written in case.steps:
        world, reply = world.step(operation)
        assert not operation.is_script or write_reply(reply) == written
        if operation.is_script:
            assert read(write(operation, reply))[0].to_argv() == operation.to_argv()


def test_leaves_the_state_it_is_given_as_it_was() -> None:
    """Each script returns a new state; the old one can be gone on from again."""
    start = State(now_ms=1_000)
    published, reply = publish(start, [b"p", b"g", b"m", b"3", b""])
    assert (start.queues, reply) == ({}, Ok(1))
    assert published.ready[3] == {b"g": 1_000}
    claimed, reply = claim(published, [b"p", b"", b"500", b"A", b"8", b"0"])
    assert reply == Ok(Delivery(b"g", b"m"))
    assert published.locks == {}
    for settle, rest in ((ack, []), (nack, [b"50"]), (extend, [b"50"])):
        settled, reply = settle(claimed, [b"p", b"g", b"A", b"", *rest])
        assert reply == Ok(1)
        assert settled != claimed
        assert claimed.locks[b"g"].value == b"A"


def test_names_every_bad_argument() -> None:
    """REDISQ_BADARG names all that are not of their form, and ARGV when there are too few or too many."""
    start = State()
    assert claim(start, [b"p", b"1e3", b"0", b"A", b"8", b"0"]) == (start, Error("REDISQ_BADARG", ("now", "px")))
    assert publish(start, [b"p"]) == (start, Error("REDISQ_BADARG", ("ARGV",)))


@pytest.mark.parametrize("package", ["model", "redisq"])
def test_imports_nothing_of_the_other(package: str) -> None:
    """The model knows neither redis nor redisq, and the library nothing of model, spec and tests."""
    allowed = {"model": {"redis", "redisq", "tests"}, "redisq": {"redis", "model", "spec", "tests"}}[package]
    for path in (ROOT / package).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & allowed, f"{path.name} imports {names}"


def test_a_trace_without_its_reply_is_no_test() -> None:
    """The traces of these tests say what every script replies, and are told apart from those that do not."""
    after('1000 publish group="g" -> 1')
    for line in ('1000 publish group="g"', '1000 publish group="g" -> 2', "1000 wait -> 1"):
        with pytest.raises(AssertionError):
            after(line)
