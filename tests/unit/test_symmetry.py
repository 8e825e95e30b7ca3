"""An operation is found by its name everywhere: its script, its model, its tests."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = {"publish", "claim", "ack", "nack", "extend"}
# Where each script has a companion, by its name.
COMPANIONS = ("model/{}.py", "tests/*/test_{}*.py")


def lacking(root: Path) -> list[str]:
    """The companions that a script of the project at `root` lacks, as `what of which`."""
    scripts = sorted(path.stem for path in (root / "redisq/lua").iterdir())
    patterns = [pattern.format(name) for name in scripts for pattern in COMPANIONS]
    return [pattern for pattern in patterns if not any(root.glob(pattern))]


def test_the_scripts_are_these_five() -> None:
    """The folder of the scripts holds the five and nothing else."""
    assert {path.name for path in (ROOT / "redisq/lua").iterdir()} == {f"{name}.lua" for name in NAMES}


def test_every_script_has_its_companions() -> None:
    """Every script has a module of the model and a file of tests by its name."""
    assert lacking(ROOT) == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_model_has_the_function(name: str) -> None:
    """The module of the model defines the function of that name."""
    assert callable(getattr(import_module(f"model.{name}"), name))


def test_a_script_alone_is_found(tmp_path: Path) -> None:
    """A script without a model, or without tests, is named."""
    for folder in ("redisq/lua", "model", "tests/unit"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("redisq/lua/peek.lua", "redisq/lua/claim.lua", "model/claim.py", "tests/unit/test_claim_order.py"):
        (tmp_path / file).touch()
    assert lacking(tmp_path) == ["model/peek.py", "tests/*/test_peek*.py"]
    (tmp_path / "model/peek.py").touch()
    (tmp_path / "model/claim.py").unlink()
    assert lacking(tmp_path) == ["model/claim.py", "tests/*/test_peek*.py"]
