"""The command says which mutants live, and what is wrong with the list of those that may."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tests.mutants import __main__ as command
from tests.mutants.equivalent import Equivalents
from tests.mutants.generate import Mutant


def hunting(monkeypatch: pytest.MonkeyPatch, killer: str, *listed: int) -> list[Mutant]:
    """The hunt for the first three mutants of ack, each with that end; those with these numbers are listed."""
    mutants = command.all_mutants(["ack"])[:3]

    def hunt(
        due: Sequence[Mutant], server: str, told: Callable[[Mutant, str], None]
    ) -> tuple[dict[str, str], dict[str, int]]:
        return {mutant.id: killer for mutant in due}, {}

    reasons = {mutants[number].id: "why" for number in listed}
    monkeypatch.setattr(command, "hunt", hunt)
    monkeypatch.setattr(command, "all_mutants", lambda scripts: mutants)
    monkeypatch.setattr("tests.mutants.equivalent.MOST", 1.0)
    monkeypatch.setattr(Equivalents, "read", lambda: Equivalents(reasons))
    return mutants


def test_all_are_killed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The count of each script, what killed, and 0."""
    hunting(monkeypatch, "case: ACK-1a")
    assert command.main(["ack"]) == 0
    out = capsys.readouterr().out
    assert (
        "ack         3 of    3 killed,   0 equivalent\nkilled by: 3 case\n3 of 3 mutants killed, 0 equivalent, 0 live"
        in out
    )


def test_one_that_lives(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It is shown with its change, and the exit code is 1."""
    mutants = hunting(monkeypatch, "", 0, 1)
    assert command.main(["ack"]) == 1
    out = capsys.readouterr().out
    assert f"LIVES  {mutants[2].id}  ack.lua:{mutants[2].line}  {mutants[2].what}\n  - " in out
    assert "0 of 3 mutants killed, 2 equivalent, 1 live" in out


def test_one_that_is_listed_and_dies(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The list is wrong, and the exit code is 1."""
    mutants = hunting(monkeypatch, "case: ACK-1a", 0)
    assert command.main(["ack"]) == 1
    assert f"WRONG  {mutants[0].id} is listed as equivalent and was killed by case: ACK-1a" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [(["ack", "ark"], "no such script: ark; there are publish, claim, "), (["ack", "--record"], "--record is of all")],
)
def test_a_bad_command_line(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    """What is wrong with it is told before anything is hunted."""
    with pytest.raises(SystemExit):
        command.main(words)
    assert says in capsys.readouterr().err
