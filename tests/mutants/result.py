"""What came of the last full run, in ``result.json``: what killed each mutant, and how far those alive agree."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.mutants.equivalent import Equivalents
from tests.mutants.generate import Mutant

FILE = Path(__file__).with_name("result.json")


def digests(sources: Mapping[str, str]) -> dict[str, str]:
    """The digest of each script."""
    return {file.removesuffix(".lua"): hashlib.sha256(text.encode()).hexdigest() for file, text in sources.items()}


@dataclass(frozen=True)
class Result:
    """A full run: of which scripts, what killed each mutant (empty: nothing), in how many tries the others agreed."""

    scripts: Mapping[str, str]
    killed_by: Mapping[str, str]
    agreed: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path = FILE) -> Result:
        """The one that is committed."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, path: Path = FILE) -> None:
        """A mutant a line, so that a change is read as one."""
        content = {"scripts": self.scripts, "killed_by": self.killed_by, "agreed": self.agreed}
        path.write_text(json.dumps(content, indent=0, sort_keys=True) + "\n", encoding="utf-8")

    def spare(self, cases: Iterable[str]) -> list[str]:
        """The cases that no mutant needs: each that a case killed, another one than these killed."""
        needed = {killer.partition(": ")[2] for killer in self.killed_by.values() if killer.startswith("case: ")}
        return [case for case in cases if case not in needed]

    def unchanged(self, sources: Mapping[str, str]) -> set[str]:
        """The scripts that are what they were."""
        now = digests(sources)
        return {name for name, digest in self.scripts.items() if now.get(name) == digest}

    def due(
        self, mutants: Sequence[Mutant], sources: Mapping[str, str], draw: random.Random, size: int
    ) -> list[Mutant]:
        """Every mutant of the scripts that changed since, and a sample of the others."""
        same = self.unchanged(sources)
        others = [mutant for mutant in mutants if mutant.script in same and self.killed_by.get(mutant.id)]
        changed = [mutant for mutant in mutants if mutant.script not in same]
        return changed + draw.sample(others, min(size, len(others)))

    def wrong(self, mutants: Sequence[Mutant], sources: Mapping[str, str], equivalents: Equivalents) -> list[str]:
        """Where it does not say what it should of the scripts that did not change, a sentence each."""
        sentences = []
        for mutant in mutants:
            if mutant.script not in self.unchanged(sources):
                continue
            if mutant.id not in self.killed_by:
                sentences.append(f"{mutant.id} is not in {FILE.name}: run python -m tests.mutants --record")
            elif not self.killed_by[mutant.id] and mutant.id not in equivalents.reasons:
                sentences.append(f"{mutant.id} lived, and is not listed as equivalent")
            elif not self.killed_by[mutant.id] and not self.agreed.get(mutant.id):
                sentences.append(f"{mutant.id} is listed as equivalent without evidence")
        return sentences
