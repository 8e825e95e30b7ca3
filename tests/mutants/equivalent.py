"""The mutants that change nothing, in ``equivalent.toml``: a reason for each; none stale, and not too many."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.generate import Mutant

FILE = Path(__file__).with_name("equivalent.toml")
MOST = 0.08  # of all mutants


@dataclass(frozen=True)
class Equivalents:
    """Mutant → why it changes nothing that anyone could see."""

    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = FILE) -> Equivalents:
        """Reads ``[[equivalent]]`` tables of ``ids`` and ``reason``."""
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
        return cls({mutant: table["reason"] for table in tables for mutant in table["ids"]})

    def wrong(self, mutants: Sequence[Mutant]) -> list[str]:
        """What is wrong with the list, given all mutants of some scripts; a sentence each."""
        there, scripts = {mutant.id for mutant in mutants}, {mutant.script for mutant in mutants}
        mine = {name: why for name, why in self.reasons.items() if name.partition("-")[0] in scripts}
        sentences = [f"{name} is listed and is no mutant any more: take it out" for name in mine if name not in there]
        sentences += [f"{name} is listed without a reason" for name, why in mine.items() if not why.strip()]
        if len(mine) > MOST * len(mutants):
            sentences.append(f"{len(mine)} of {len(mutants)} mutants are listed as equivalent; {MOST:.0%} may be")
        return sentences

    def refuted(self, killed_by: Mapping[str, str]) -> list[str]:
        """Those that were killed all the same, a sentence each."""
        return [
            f"{name} is listed as equivalent and was killed by {killer}"
            for name, killer in killed_by.items()
            if killer and name in self.reasons
        ]
