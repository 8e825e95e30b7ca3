"""The known-bad designs: variants of the scripts that every check of the suite must reject, and a few it must accept.

A folder of ``tests/designs`` holds only what it changes, laid over the package's scripts by ``lay_over``:

``README.md``
    what the design gets wrong, in one sentence; what convicts it; then ``breaks:`` the corrections (E1 …) or the
    operations whose clauses it breaks, or ``nothing``, and ``shows:`` where (see ``SHOWS``).
``edits.toml``
    ``[[edit]]`` tables of ``file``, ``old`` and ``new``: a text that must stand exactly once in the script, and what
    stands there instead. So a design cannot outlive a change of the script unseen.
``NAME.lua``
    a whole script.
``nack.py``
    a nack that is no script: a generator that yields between its round trips and returns the reply.

The folders of ``tests/designs/equivalent`` are no faults: they say the same in other words. One without files is made
by the function of ``REWRITES`` that has its name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "designs"
NAMES = ("publish", "claim", "ack", "nack", "extend")
SHOWS = ("plain", "round-trips", "maxmemory", "acl", "nowhere")
"""Where a fault shows: on any server; between the round trips of an operation; on a full server; to a user whom one
command is refused; nowhere, for there is none."""


class DesignError(ValueError):
    """A folder that is no design, or one that no longer fits the scripts."""


@dataclass(frozen=True, slots=True)
class Design:
    """A variant of the scripts."""

    name: str
    """The name of its folder."""
    path: Path
    breaks: tuple[str, ...]
    """Corrections (E1 …) and operations; empty for an equivalent."""
    shows: str
    """One of SHOWS."""
    sentence: str
    """What it gets wrong."""

    @property
    def nack(self) -> Path | None:
        """The file of a nack that is no script."""
        path = self.path / "nack.py"
        return path if path.exists() else None


def designs(folder: Path = FOLDER) -> list[Design]:
    """The known-bad designs of a folder by name. Raises DesignError."""
    return [_read(path.parent) for path in sorted(folder.glob("*/README.md"))]


def equivalents() -> list[Design]:
    """The designs that differ in words only, by name. Raises DesignError."""
    return designs(FOLDER / "equivalent")


def package_scripts() -> dict[str, str]:
    """The package's scripts, as ``{"ack.lua": source, …}``."""
    folder = files("redisq") / "lua"
    return {f"{name}.lua": (folder / f"{name}.lua").read_text(encoding="utf-8") for name in NAMES}


def lay_over(design: Design, into: Path) -> Path:
    """Writes the five scripts of the design into a folder and returns it. Raises DesignError."""
    into.mkdir(parents=True, exist_ok=True)
    for file, source in changed(design, package_scripts()).items():
        (into / file).write_text(source, encoding="utf-8", newline="\n")
    return into


def changed(design: Design, scripts: Mapping[str, str]) -> dict[str, str]:
    """The scripts with the design laid over. Raises DesignError."""
    result = dict(scripts)
    rewrite = REWRITES.get(design.name)
    if rewrite:
        result = {file: rewrite(source) for file, source in result.items()}
    whole = {path.name for path in design.path.glob("*.lua")}
    for file in whole:
        if file not in result:
            raise DesignError(f"{design.name}: {file} is none of the scripts")
        result[file] = (design.path / file).read_text(encoding="utf-8")
    for number, edit in enumerate(_edits(design.path), 1):
        file, old, new = edit["file"], edit["old"], edit["new"]
        where = f"{design.name}: edit {number} of edits.toml"
        if file not in result or file in whole:
            raise DesignError(f"{where}: {file} is none of the scripts, or is replaced as a whole")
        count = result[file].count(old)
        if count != 1 or old == new:
            raise DesignError(f"{where}: this stands {count} times in {file}, not once, or is not changed:\n{old}")
        result[file] = result[file].replace(old, new)
    if result == scripts and not design.nack:
        raise DesignError(f"{design.name}: it changes nothing")
    return result


def load_nack(design: Design) -> Callable[..., Generator[str, None, int]]:
    """The nack of a design that is no script: ``nack(client, prefix, group, token, now_ms, delay_ms)``.

    It yields the name of each command before it sends it, and returns 1 or 0.
    """
    spec = spec_from_file_location(f"nack of {design.name}", design.path / "nack.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    nack: Callable[..., Generator[str, None, int]] = module.nack
    return nack


def _edits(folder: Path) -> list[dict[str, str]]:
    path = folder / "edits.toml"
    if not path.exists():
        return []
    edits: list[dict[str, str]] = tomllib.loads(path.read_text(encoding="utf-8"))["edit"]
    for edit in edits:
        if edit.keys() != {"file", "old", "new"}:
            raise DesignError(f"{folder.name}: an edit has file, old and new, not {', '.join(edit)}")
    return edits


def _read(path: Path) -> Design:
    lines = (path / "README.md").read_text(encoding="utf-8").splitlines()
    said = dict(line.split(": ", 1) for line in lines if re.match(r"(breaks|shows): ", line))
    if not lines or not lines[0].endswith(".") or said.keys() != {"breaks", "shows"}:
        raise DesignError(f"{path.name}: README.md begins with a sentence, and has a line breaks: and a line shows:")
    breaks = tuple(said["breaks"].split())
    for word in breaks:
        if not re.fullmatch(r"E([1-9]|1[0-6])", word) and word not in NAMES and breaks != ("nothing",):
            raise DesignError(f"{path.name}: breaks: {word} is no correction and no operation")
    if said["shows"] not in SHOWS or (breaks == ("nothing",)) != (said["shows"] == "nowhere"):
        raise DesignError(f"{path.name}: shows: one of {', '.join(SHOWS)}; nowhere is for what breaks nothing")
    return Design(path.name, path, breaks if breaks != ("nothing",) else (), said["shows"], lines[0])


TOKEN = re.compile(r"""--[^\n]*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*|\d+|\.\.|[=~<>]=|\s+|.""")
"""A token of the Lua the scripts are written in: comment, string, word, number, operator, space."""
WORDS = frozenset(
    {"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or"}
    | {"repeat", "return", "then", "true", "until", "while", "redis", "ARGV", "string", "math"}
    | {"type", "tonumber", "tostring", "ipairs"}
)
"""The words of a script that are no locals."""


def reformatted(source: str) -> str:
    """The script without comments, its tokens apart, and its lines broken after ``then`` and ``do``."""
    tokens = [token for token in TOKEN.findall(source) if not token.startswith("--") and not token.isspace()]
    return "".join(token + ("\n\t" if token in ("then", "do") else " ") for token in tokens) + "\n"


def renamed(source: str) -> str:
    """The script with every local under another name."""
    names: dict[str, str] = {}
    tokens = TOKEN.findall(source)
    for position, token in enumerate(tokens):
        if re.match(r"[A-Za-z_]", token) and token not in WORDS and tokens[position - 1] != ".":
            tokens[position] = names.setdefault(token, f"v{len(names) + 1}")
    return "".join(tokens)


REWRITES: Mapping[str, Callable[[str], str]] = {"reformatted": reformatted, "renamed": renamed}
