"""What is in the wheel and the sdist, and what they say about themselves."""

from __future__ import annotations

import configparser
import re
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import redisq
from tests.packaging.environments import ROOT, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SCRIPTS = ("publish", "claim", "ack", "nack", "extend")


@pytest.fixture(scope="module")
def inside(wheel: Path) -> dict[str, bytes]:
    """The files of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(inside: dict[str, bytes]) -> Message:
    """What the wheel says about itself."""
    return message_from_bytes(inside[f"redisq_transport-{PROJECT['version']}.dist-info/METADATA"])


def test_nothing_but_the_package_is_importable(inside: dict[str, bytes]) -> None:
    """The wheel puts one name into site-packages, beside its own metadata: no model, spec, tests or bench."""
    assert {name.split("/")[0] for name in inside} == {"redisq", f"redisq_transport-{PROJECT['version']}.dist-info"}


def test_scripts_and_types_are_inside(inside: dict[str, bytes]) -> None:
    """The scripts lie in the wheel byte for byte, and its types are for its users."""
    for name in SCRIPTS:
        assert inside[f"redisq/lua/{name}.lua"] == (ROOT / f"redisq/lua/{name}.lua").read_bytes()
    assert "redisq/py.typed" in inside


def test_suite_is_inside(inside: dict[str, bytes]) -> None:
    """The suite travels in the package: model, spec, what conformance needs of the tests, the clock's source."""
    suite = {name.removeprefix("redisq/_suite/") for name in inside if name.startswith("redisq/_suite/")}
    expected = {"pyproject.toml", "tests/conftest.py", "tests/support/clock.c", "tests/differential/machine.py"}
    for pattern in ("model/*.py", "spec/**/*.*", "tests/conformance/*.py"):
        expected |= {str(path.relative_to(ROOT)) for path in ROOT.glob(pattern)}
    assert expected <= suite
    assert not [name for name in suite if re.match(r"tests/(unit|designs|packaging|faults)/|bench/", name)]
    assert not [name for name in inside if name.endswith((".pyc", ".so"))]


def test_metadata(inside: dict[str, bytes], metadata: Message) -> None:
    """Name, version, license with its text, the Python it needs, its extras; no dependency without an extra."""
    assert metadata["Name"] == "redisq-transport"
    assert metadata["Version"] == PROJECT["version"] == redisq.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert set(metadata.get_all("Provides-Extra", [])) == {"redis", "conformance", "cli"}
    assert [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line] == []
    text = inside[f"redisq_transport-{PROJECT['version']}.dist-info/licenses/LICENSE"]
    assert text == (ROOT / "LICENSE").read_bytes()
    assert b"redisq-conformance = redisq.conformance:main" in b"".join(
        content for name, content in inside.items() if name.endswith("entry_points.txt")
    )


def test_every_package_has_a_reason() -> None:
    """Beside each package that pyproject.toml asks for stands what it is for."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lists = text[text.index("[project.optional-dependencies]") : text.index("[tool.")]
    packages = [line for line in lists.splitlines() if re.match(r'\s*"[\w-]+(\[\w+\])?>=', line)]
    assert len(packages) > 10
    assert [line for line in packages if not re.search(r"\", # \w", line)] == []


def test_oldest_versions_are_those_tested() -> None:
    """The environment `oldest` of tox.ini installs the lowest version that the extra allows, of each package."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    tested = dict(line.split(";")[0].split("==") for line in tox["testenv:oldest"]["deps"].strip().splitlines())
    allowed = dict(
        re.sub(r"\[\w+\]", "", line.split(";")[0]).split(">=")
        for line in PROJECT["optional-dependencies"]["conformance"]
    )
    assert tested.keys() == allowed.keys()
    for name, version in allowed.items():
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", tested[name]), name


def test_sdist_is_the_project(sdist: Path) -> None:
    """The sdist holds every file that the project keeps under version control, and no other."""
    with tarfile.open(sdist) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames()}
    if not (ROOT / ".git").exists():  # as in an unpacked sdist
        pytest.skip("not a checkout: nothing says which files are the project's")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    kept = {name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()}
    assert kept - held == set()
    assert held - kept == {"PKG-INFO"}
