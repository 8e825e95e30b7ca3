"""The named cases of the spec, on every chosen system under test."""

from __future__ import annotations

import pytest

from model.notation import write_reply
from tests.support.cases import CASES, Case
from tests.support.judge import settle, try_case
from tests.support.library import Library
from tests.support.session import Session
from tests.support.witness import Witness


def asked(run: Session) -> list[Witness]:
    """All but the library beyond its first server: it adds a translation, which is the same on each of them."""
    return [w for group in run.groups.values() for w in (group[:1] if isinstance(group[0], Library) else group)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(run: Session, case: Case) -> None:
    """A trace of the spec gives the replies and the key space that the model gives, on every system."""
    settle([try_case(run, case, witness) for witness in asked(run) if witness.exact])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_spec_says_what_the_model_gives(case: Case) -> None:
    """The replies written in the spec are the model's."""
    from model.run import World

    world = World()
    for number, (operation, written) in enumerate(case.steps, 1):
        world, reply = world.step(operation)
        given = write_reply(reply) if operation.is_script else None
        assert written == given, f"{case.id}, step {number}: the page says {written}, the model {given}"
