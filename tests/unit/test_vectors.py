"""The vectors: generated from the pages, of their schema, and enough for a runner of one's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis

from model.operation import ARGUMENTS, Error, Json, reply_to_json, untagged
from tests.support.cases import CASES, Case
from tests.support.fake import FakeHost
from tests.support.keyspace import read_keyspace
from tests.support.port.check import schema, validator
from tests.support.session import PACKAGE_LUA
from tests.support.vectors import VECTORS, files, vector
from tests.support.witness import reply_of, reply_of_error


def test_files_are_what_the_pages_say() -> None:
    """Every case has its file, word for word as it would be written now; `tox run -e vectors` writes them."""
    there = {path: path.read_text(encoding="utf-8") for path in VECTORS.iterdir()}
    assert there == files()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_vector_is_of_its_schema(case: Case) -> None:
    """A vector is what spec/schemas/vector.json describes."""
    validator("vector").validate(vector(case))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda v: v.pop("level"), "'level' is a required property"),
        (lambda v: v["steps"][0]["operation"].update(priority="high"), "operation"),
        (lambda v: v["steps"][0].pop("reply"), "steps.0"),
        (lambda v: v["steps"][0]["states"][0]["ready"].pop(), "ready"),
        (lambda v: v.update(capability="speed"), "capability"),
    ],
)
def test_the_schema_refuses(change: Any, what: str) -> None:
    """A vector that lacks a member, or has one of another form."""
    broken = vector(CASES[0])
    change(broken)
    errors = [f"{'.'.join(map(str, e.absolute_path))} {e.message}" for e in validator("vector").iter_errors(broken)]
    assert any(what in error for error in errors), errors


def test_schema_knows_every_operation() -> None:
    """The schema of the operation object has each operation with each of its arguments, and no other."""
    found = {
        variant["title"]: set(variant["properties"]) - {"id", "op", "time_ms"}
        for variant in schema("operation")["oneOf"]
    }
    found.pop("a script with a raw ARGV")
    assert found == {op: set(names) for op, names in ARGUMENTS.items()}


def as_argv(operation: Json) -> list[bytes]:
    """What the README of the spec says: arguments in the order of the script's ARGV, null as nothing."""
    if "argv" in operation:
        return [untagged(value, "argv") for value in operation["argv"]]
    values = [operation[name] for name in ARGUMENTS[operation["op"]]]
    return [b"" if v is None else b"%d" % v if isinstance(v, int) else untagged(v, "argument") for v in values]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_runner_needs_nothing_else(case: Case) -> None:
    """From its file alone a case can be run on a server: commands, replies and every key after each step."""
    host = FakeHost()
    client = host.client()
    read = json.loads((VECTORS / f"{case.id}.json").read_text(encoding="utf-8"))
    client.flushdb()
    host.clock.set_ms(read["steps"][0]["operation"]["time_ms"], touch=())
    for step in read["steps"]:
        operation = step["operation"]
        if operation["time_ms"] != host.clock.now_ms():
            host.clock.set_ms(operation["time_ms"])
        with host.clock.frozen():
            if "reply" in step:
                source, argv = (PACKAGE_LUA / f"{operation['op']}.lua").read_bytes(), as_argv(operation)
                try:
                    got = reply_of(client.eval(source, 1, b"k", *argv))
                except redis.ResponseError as error:
                    got = reply_of_error(error, operation["op"])
                assert _says(got, step["reply"]), f"{step['line']}: {got}"
            for command in step.get("commands", ()):
                client.execute_command(*[untagged(word, "word") for word in command])
            prefixes = [untagged(state["prefix"], "prefix") for state in step["states"]]
            states = read_keyspace(client, prefixes, host.clock.now_ms())
        for state in step["states"]:
            prefix = untagged(state.pop("prefix"), "prefix")
            assert states[prefix].to_json() == state, step["line"]


def _says(got: Any, due: Json) -> bool:
    if isinstance(got, Error):
        return "error" in due and (got.code == "REDISQ_BADARG") == (due["error"]["code"] == "REDISQ_BADARG")
    return reply_to_json(got) == due
