"""The mutants of a script: one small change each, made from a parse of the Lua, never by hand.

A mutant is a replaced stretch of the source. What is said to a person (the second argument of ``bad``, comments) is
left alone: texts are not the contract.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from luaparser import astnodes  # type: ignore[import-untyped]

from tests.support.lua_tree import Node, Tree, literal, walk

Edit = tuple[int, int, str, str]  # from, to (exclusive), what stands there instead, what was done

COMPARISONS = {
    "EqToOp": [("==", "~=")],
    "NotEqToOp": [("~=", "==")],
    "LessThanOp": [("<", "<="), ("<", ">")],
    "GreaterThanOp": [(">", ">="), (">", "<")],
    "LessOrEqThanOp": [("<=", "<"), ("<=", ">")],
    "GreaterOrEqThanOp": [(">=", ">"), (">=", "<")],
    "AndLoOp": [("and", "or")],
    "OrLoOp": [("or", "and")],
    "AdditionOp": [("+", "-")],
    "SubtractionOp": [("-", "+")],
    "MultOp": [("*", "+")],
}
# A word of a command, and what it is mistaken for.
WORDS = {
    "RPUSH": ["LPUSH"],
    "LPOP": ["RPOP"],
    "PX": ["EX"],
    "PTTL": ["TTL"],
    "PEXPIRE": ["EXPIRE"],
    "ZREM": ["ZSCORE"],
    "HDEL": ["HGET"],
    "DEL": ["EXISTS"],
    "GETEX": ["GET", "EXISTS"],
    "LLEN": ["EXISTS"],
    "ZRANGEBYSCORE": ["ZREVRANGEBYSCORE"],
    "-inf": ["0", "(0"],
    "(": ["", "[x"],
    "parked": ["", "lease"],
    "0": ["1", "-1"],
    "1": ["0", "2"],
    "4": ["3"],
    ":lock:": [":q:"],
    ":q:": [":lock:"],
    ":prio": [":prios"],
    ":ready:": [":prio:"],
    "string": ["table"],
    "list": ["string"],
    "none": ["list"],
    "00000": ["", "0000"],
    "%.0f": ["%.1f", "%d"],
}
FLAGS = {"NX": 1, "PX": 2, "WITHSCORES": 1, "LIMIT": 3}  # and how many words they are


@dataclass(frozen=True)
class Mutant:
    """One change of one script."""

    script: str
    line: int
    what: str
    source: str
    diff: tuple[str, str]  # the lines before and after
    nth: int = 0  # of those that read the same

    @property
    def id(self) -> str:
        """Permanent while the line it changes stands: a digest of what is done to it."""
        digest = hashlib.sha256("\n".join((self.what, *self.diff, str(self.nth))).encode()).hexdigest()[:8]
        return f"{self.script}-{digest}"


def mutants(script: str, source: str) -> list[Mutant]:
    """Every mutant of a script, each once, in the order of the source."""
    tree = Tree(source)
    found: dict[str, Mutant] = {}
    alike: Counter[tuple[str, str, str]] = Counter()
    for start, stop, new, what in sorted(set(_edits(tree)), key=lambda edit: (edit[0], edit[1], edit[3], edit[2])):
        mutated = source[:start] + new + source[stop:]
        first = source.rfind("\n", 0, start) + 1
        last = (source + "\n").find("\n", stop)
        before, after = source[first:last], mutated[first : last + len(mutated) - len(source)]
        if mutated != source and mutated not in found:
            number, diff = source.count("\n", 0, start) + 1, (before.strip(), after.strip())
            found[mutated] = Mutant(script, number, what, mutated, diff, alike[what, *diff])
            alike[what, *diff] += 1
    return list(found.values())


def _edits(tree: Tree) -> Iterator[Edit]:
    told = {id(child) for node in tree.of(astnodes.Call) if _is_bad(node) for child in walk(node)}
    for node in tree.nodes:
        if id(node) in told:
            continue
        for mutate in MUTATORS:
            yield from mutate(tree, node)


def _is_bad(node: Node) -> bool:
    return isinstance(node.func, astnodes.Name) and node.func.id == "bad"


def _span(node: Node) -> tuple[int, int]:
    return node.start_char, node.stop_char + 1


def _statement(tree: Tree, node: Node) -> tuple[int, int]:
    """The span of a statement: the parser has `redis.call(…)` begin at its dot."""
    start, stop = _span(node)
    head = re.search(r"\w*$", tree.source[:start]) if tree.source[start] == "." else None
    return start - len(head[0]) if head else start, stop


def _text(tree: Tree, node: Node) -> str:
    start, stop = _span(node)
    return tree.source[start:stop]


def operators(tree: Tree, node: Node) -> Iterator[Edit]:
    """Another operator between the same operands."""
    for old, new in COMPARISONS.get(type(node).__name__, ()):
        start, stop = _span(node.left)[1], _span(node.right)[0]
        at = tree.source.find(old, start, stop)
        if at >= 0:
            yield at, at + len(old), new, f"{old} becomes {new}"


def conditions(tree: Tree, node: Node) -> Iterator[Edit]:
    """A guard that is always, never or the other way round true; a `not` less."""
    if isinstance(node, astnodes.If | astnodes.ElseIf | astnodes.While):
        start, stop = _span(node.test)
        text = tree.source[start:stop]
        yield start, stop, f"not ({text})", "the condition is negated"
        yield start, stop, "false", "the condition is never true"
        if not isinstance(node, astnodes.While):
            yield start, stop, "true", "the condition is always true"
    if isinstance(node, astnodes.ULNotOp):
        start, stop = _span(node)
        inner, end = _span(node.operand)
        yield start, stop, tree.source[inner:end], "a not is dropped"
    if isinstance(node, astnodes.AndLoOp | astnodes.OrLoOp):
        start, stop = _span(node)
        for kept, lost in ((node.left, "right"), (node.right, "left")):
            yield start, stop, _text(tree, kept), f"the {lost} operand is dropped"


def numbers(tree: Tree, node: Node) -> Iterator[Edit]:
    """One more, one less."""
    if isinstance(node, astnodes.Number) and isinstance(node.n, int):
        start, stop = _span(node)
        yield start, stop, str(node.n + 1), f"{node.n} becomes {node.n + 1}"
        yield start, stop, str(node.n - 1), f"{node.n} becomes {node.n - 1}"


def words(tree: Tree, node: Node) -> Iterator[Edit]:
    """A command, a key or a format becomes another."""
    word = literal(node)
    if word is not None:
        start, stop = _span(node)
        for other in WORDS.get(word, ()):
            yield start, stop, f"'{other}'", f"{word!r} becomes {other!r}"


def patterns(tree: Tree, node: Node) -> Iterator[Edit]:
    """The form of an argument is looked at less closely."""
    if not (isinstance(node, astnodes.Call) and tree.library(node.func) == ("string", "find")):
        return
    start, stop = _span(node.args[1])
    text = tree.source[start:stop]
    for old, new in (("'^", "'"), ("$'", "'"), ("[1-9]", "%d"), ("%d*", "%d?"), ("%d?", "%d*"), ("%-?", "")):
        if old in text:
            yield start, stop, text.replace(old, new, 1), f"pattern: {old} becomes {new}"
    for old, new in (("[0-4]", "[0-5]"), ("[0-4]", "[1-4]"), ("[0-4]", "%d"), ("%-", "")):
        if old in text:
            yield start, stop, text.replace(old, new, 1), f"pattern: {old} becomes {new}"


def arguments(tree: Tree, node: Node) -> Iterator[Edit]:
    """The neighbour's argument; two arguments of a command swapped; a flag less."""
    if isinstance(node, astnodes.Index) and isinstance(node.value, astnodes.Name) and node.value.id == "ARGV":
        start, stop = _span(node)
        number = int(node.idx.n)
        for other in (number - 1, number + 1):
            yield start, stop, f"ARGV[{other}]", f"ARGV[{number}] becomes ARGV[{other}]"
    if tree.command(node) is None:
        return
    args = node.args[1:]
    for one, two in pairwise(args):
        (start, mid), (again, stop) = _span(one), _span(two)
        swapped = tree.source[again:stop] + tree.source[mid:again] + tree.source[start:mid]
        yield start, stop, swapped, "two arguments are swapped"
    for at, arg in enumerate(node.args):
        size = FLAGS.get(literal(arg) or "", 0)
        if size:
            start, stop = _span(node.args[at - 1])[1], _span(node.args[at + size - 1])[1]
            yield start, stop, "", f"{literal(arg)} is dropped"


def statements(tree: Tree, node: Node) -> Iterator[Edit]:
    """A statement less; two neighbours in the other order; one more TIME."""
    if not isinstance(node, astnodes.Block):
        return
    for statement in node.body:
        if isinstance(statement, astnodes.Call | astnodes.Assign | astnodes.Break) and not isinstance(
            statement, astnodes.LocalAssign
        ):
            yield *_statement(tree, statement), "", "a statement is dropped"
        if isinstance(statement, astnodes.Return):
            yield from _returns(tree, statement)
        if tree.command(statement) is not None:
            start, _ = _statement(tree, statement)
            yield start, start, "redis.call('TIME'); ", "one more TIME"
    for one, two in pairwise(node.body):
        if tree.command(one) is not None and tree.command(two) is not None:
            (start, mid), (again, stop) = _statement(tree, one), _statement(tree, two)
            yield (
                start,
                stop,
                tree.source[again:stop] + tree.source[mid:again] + tree.source[start:mid],
                "two commands are swapped",
            )


def _returns(tree: Tree, node: Node) -> Iterator[Edit]:
    start, stop = _span(node)
    if not any(isinstance(value, astnodes.Call) and _is_bad(value) for value in node.values):
        yield start, stop, "return nil", "the reply becomes nil"
        yield start, stop, "do end", "a return is dropped"
    else:
        yield start, stop, "do end", "a refusal is dropped"
    if len(node.values) > 1:
        first = _text(tree, node.values[0])
        yield start, stop, f"return {first}", "the second value is dropped"


def tables(tree: Tree, node: Node) -> Iterator[Edit]:
    """Two fields of a list swapped, or the last one dropped."""
    if isinstance(node, astnodes.Table) and len(node.fields) > 1:
        spans = [_span(field.value) for field in node.fields]
        (start, mid), (again, stop) = spans[-2:]
        yield start, stop, tree.source[again:stop] + tree.source[mid:again] + tree.source[start:mid], "fields swapped"
        yield mid, stop, "", "the last field is dropped"


def loops(tree: Tree, node: Node) -> Iterator[Edit]:
    """A loop that begins or ends elsewhere: where the bound is an expression, one off."""
    if isinstance(node, astnodes.Fornum) and not isinstance(node.start, astnodes.Number):
        start, stop = _span(node.start)
        yield start, stop, f"({tree.source[start:stop]}) + 1", "the loop begins one later"
    if isinstance(node, astnodes.Fornum) and not isinstance(node.stop, astnodes.Number):
        start, stop = _span(node.stop)
        yield start, stop, f"{tree.source[start:stop]} - 1", "the loop ends one earlier"


MUTATORS: tuple[Callable[[Tree, Node], Iterator[Edit]], ...] = (
    operators,
    conditions,
    numbers,
    words,
    patterns,
    arguments,
    statements,
    tables,
    loops,
)
