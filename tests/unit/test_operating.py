"""The page on doctor and audit names what they can find, as they find it."""

from __future__ import annotations

import re
from pathlib import Path

from redisq.ops import doctor, rights
from redisq.ops.kinds import KINDS

PAGE = (Path(__file__).parents[2] / "spec" / "operating.md").read_text(encoding="utf-8")
DOCTOR, AUDIT = PAGE.split("\n## ")[1:]
ROW = re.compile(r"^\| `([a-z-]+)` \| (.*) \|$", re.MULTILINE)


def test_every_kind_of_finding_of_an_audit_is_told() -> None:
    """The table has a row for each kind, with its severity, what it says, why it matters and what a repair does."""
    rows = {code: rest.split(" | ") for code, rest in ROW.findall(AUDIT)}
    assert rows == {
        code: [
            kind.severity.name.lower(),
            re.sub(r"\{.*?\}", "…", kind.what),
            kind.why,
            kind.heals or f"nothing: {kind.fix}",
        ]
        for code, kind in KINDS.items()
    }


def test_every_finding_of_a_doctor_is_told() -> None:
    """The table has a row for each code that the examination can give, and no other."""
    sources = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in (doctor, rights))
    assert {code for code, _ in ROW.findall(DOCTOR)} == set(re.findall(r'Finding\(\s*"([a-z-]+)"', sources))
