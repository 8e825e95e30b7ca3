"""The cases of the spec as data: ``spec/vectors/ID.json``, for whoever runs them without this suite.

``python -m tests.support.vectors`` writes them anew from the pages and the model; a test fails while they differ.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from model.notation import write
from model.operation import PREFIX, Json, Operation, Reply, reply_to_json, tagged
from model.run import World
from tests.support.cases import CASES, CLAUSES, SPEC, Case
from tests.support.keyspace import foreign_commands
from tests.support.port.messages import request

VECTORS = SPEC / "vectors"


def vector(case: Case) -> Json:
    """The case as ``spec/schemas/vector.json`` describes it."""
    prefixes = list(dict.fromkeys(op.prefix for op in case.operations if op.op != "wait" and op.prefix)) or [PREFIX]
    return {
        "id": case.id,
        "sentence": case.sentence,
        "page": CLAUSES[case.clauses[0]].page,
        "clauses": list(case.clauses),
        "capability": case.capability,
        "level": case.level,
        "steps": list(_steps(case, prefixes)),
    }


def _steps(case: Case, prefixes: list[bytes]) -> Iterator[Json]:
    world = World(case.operations[0].time_ms)
    for operation in case.operations:
        world, reply = world.step(operation)
        states = [{"prefix": tagged(prefix), **world.state(prefix).to_json()} for prefix in prefixes]
        yield {
            "line": write(operation, reply),
            "operation": request(operation),
            **_done(operation, reply),
            "states": states,
        }


def _done(operation: Operation, reply: Reply) -> Json:
    if operation.is_script:
        return {"reply": reply_to_json(reply)}
    return {"commands": [[tagged(_word(word)) for word in command] for command in foreign_commands(operation)]}


def _word(word: object) -> bytes:
    return word if isinstance(word, bytes) else str(word).encode()


def text(case: Case) -> str:
    """The file of a case: JSON, a line for each step."""
    whole = vector(case)
    steps = whole.pop("steps")
    head = json.dumps(whole, indent=1, ensure_ascii=False).removesuffix("\n}")
    lines = ",\n".join(f"  {json.dumps(step, ensure_ascii=False)}" for step in steps)
    return f'{head},\n "steps": [\n{lines}\n ]\n}}\n'


def files() -> dict[Path, str]:
    """Every file with its text."""
    return {VECTORS / f"{case.id}.json": text(case) for case in CASES}


def main() -> None:
    """Writes the files that are due and removes those that are none."""
    due = files()
    VECTORS.mkdir(exist_ok=True)
    for path in set(VECTORS.iterdir()) - due.keys():
        path.unlink()
    for path, content in due.items():
        path.write_text(content, encoding="utf-8")
    print(f"{len(due)} vectors, {sum(map(len, due.values())) // 1024} KiB: {VECTORS}")


if __name__ == "__main__":
    main()
