"""The rules for the Lua, each a function: its name in RULES is its id, its docstring its sentence.

What an expression can hold is told by ``lua_values``, what can have happened before a command by ``lua_paths``; where
they cannot tell, the rule is broken: write it more plainly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from luaparser import astnodes  # type: ignore[import-untyped]

from tests.support.lua_paths import Flow, Path
from tests.support.lua_subset import (
    COMMANDS,
    FIRST_WRITE,
    FUNCTIONS,
    GLOBALS,
    KEY_SPACE,
    LIBRARY,
    PREFIX,
    READS,
    REDIS,
    SCRIPTS,
)
from tests.support.lua_tree import Node, Tree, literal
from tests.support.lua_values import FALSY, NUMBERS, Value, Values

NEW_ESCAPE = re.compile(r"(?<!\\)(\\\\)*\\[xzu]")


class Script:
    """A script as the rules see it. Raises LuaSyntaxError."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.tree = Tree(source)
        self.values = Values(self.tree)
        self.reached: list[tuple[Node, str, Path]] = []
        Flow(self.tree, lambda node, command, path: self.reached.append((node, command, path)))


Found = Iterator[tuple[Node | int, str]]
"""Where, as a node or a line, and what with how to mend it."""
RULES: dict[str, Callable[[Script], Found]] = {}


def rule(name: str) -> Callable[[Callable[[Script], Found]], Callable[[Script], Found]]:
    """Makes a function the rule of that name."""

    def register(check: Callable[[Script], Found]) -> Callable[[Script], Found]:
        RULES[name] = check
        return check

    return register


@rule("portable")
def portable(script: Script) -> Found:
    """The source is ASCII and Lua 5.1, without a shebang."""
    if script.tree.source.startswith("#"):
        yield 1, "a shebang is refused by Redis 6.2 and fakeredis: drop the line"
    if not script.tree.source.isascii() or "\r" in script.tree.source:
        yield 1, "a byte that is no printable ASCII, which an editor or a port may change: spell it out"
    newer = (astnodes.Goto, astnodes.Label, astnodes.Attribute, astnodes.FloorDivOp, astnodes.BitOp, astnodes.UBNotOp)
    for node in script.tree.of(*newer):
        yield node, f"{type(node).__name__} is not in Lua 5.1: say it with what 5.1 has"
    for node in script.tree.of(astnodes.String):
        if node.delimiter is not astnodes.StringDelimiter.DOUBLE_SQUARE and NEW_ESCAPE.search(node.raw):
            yield node, r"the escape \x, \z or \u reads as a letter in Lua 5.1: use \ddd"
    for node in script.tree.of(astnodes.Break):
        if node is not script.tree.parent(node).body[-1]:
            yield node, "a break that is not the last statement of its block is no Lua 5.1: move it to the end"


@rule("globals")
def no_globals(script: Script) -> Found:
    """No global is written, and only the few known ones are read: a typo would read as nil on fakeredis."""
    tree = script.tree
    for node in tree.of(astnodes.Name):
        if tree.is_free(node) and node.id not in GLOBALS | FUNCTIONS | {"KEYS"}:
            yield node, f"{node.id} is a global: make it a local, or spell it as the local it should be"
    for node in tree.of(astnodes.Function, astnodes.Method):
        yield node, "a function without `local` is a global: write `local function`"
    for node in tree.of(astnodes.Assign):
        for target in node.targets:
            base = target
            while isinstance(base, astnodes.Index):
                base = base.value
            if tree.is_free(base):
                yield node, f"{base.id} is written and is a global: assign to a local"


@rule("library")
def library(script: Script) -> Found:
    """Of the libraries only what is alike everywhere, called by its full name; functions are local and have names."""
    tree = script.tree
    for node in tree.of(astnodes.Name):
        parent = tree.parent(node)
        if tree.is_free(node, "string") or tree.is_free(node, "math"):
            names = tree.library(parent)
            if names not in LIBRARY or not _is_called(tree, parent):
                allowed = ", ".join(".".join(names) for names in sorted(LIBRARY))
                yield node, f"{'.'.join(names or (node.id,))} is outside the subset: call one of {allowed}"
        elif tree.is_free(node) and node.id in FUNCTIONS and not _is_called(tree, node):
            yield node, f"{node.id} is handed on: call it where it is needed"
        elif tree.is_free(node, "ARGV") and not isinstance(parent, astnodes.Index | astnodes.ULengthOP):
            yield node, "ARGV is handed on whole: take ARGV[1], ARGV[2] … or #ARGV"
        binding = tree.binding(node)
        if binding and binding.function and parent is not binding.function and not _is_called(tree, node):
            yield node, f"{node.id} is handed on: call it where it is needed"
    for node in tree.of(astnodes.Invoke):
        yield node, "a method call hides which function runs: write string.NAME(…)"
    for node in tree.of(astnodes.AnonymousFunction):
        yield node, "a function without a name: write `local function`"
    for node in tree.of(astnodes.Dots, astnodes.Varargs):
        yield node, "varargs are unbounded: name the parameters"


@rule("redis-api")
def redis_api(script: Script) -> Found:
    """Of redis only call, pcall and error_reply, called by their full names."""
    tree = script.tree
    for node in tree.of(astnodes.Name):
        parent = tree.parent(node)
        if tree.is_free(node, "redis") and (tree.library(parent) not in REDIS or not _is_called(tree, parent)):
            yield node, "write redis.call(…), redis.pcall(…) or redis.error_reply(…); nothing else is on every server"


@rule("commands")
def commands(script: Script) -> Found:
    """Each command is a literal in capitals, and one of those the script is known to use."""
    allowed = SCRIPTS.get(script.name)
    if allowed is None:
        yield 1, f"{script.name}.lua is none of the scripts: {', '.join(SCRIPTS)}"
        return
    for command, node in script.tree.commands():
        if not command:
            yield node, "the first argument is the command, as a literal: redis.call('GET', …)"
        elif command not in allowed.split():
            yield node, f"{command} is not known of {script.name}: use {allowed}, or add it to the rule"


@rule("keys-unread")
def keys_unread(script: Script) -> Found:
    """KEYS only routes and is never read."""
    for node in script.tree.of(astnodes.Name):
        if script.tree.is_free(node, "KEYS"):
            yield node, "KEYS is read: compute the key from the prefix, ARGV[1]"


@rule("key-space")
def key_space(script: Script) -> Found:
    """The key of each command is computed in a form of the key space, the one that holds its type."""
    for command, node in script.tree.commands():
        forms = [KEY_SPACE[key] for key in COMMANDS[command].keys.split()] if command in COMMANDS else []
        if forms and len(node.args) > 1:
            value = script.values.of(node.args[1])
            if not value.shapes or not all(re.fullmatch("|".join(form for form, _ in forms), s) for s in value.shapes):
                written = " or ".join(text for _, text in forms)
                yield node, f"the key of {command} can be {_told(value)}: write {written}"


@rule("one-key")
def one_key(script: Script) -> Found:
    """No command names two keys, or more arguments than its use here has: a cluster may keep them apart."""
    for command, node in script.tree.commands():
        use = COMMANDS.get(command)
        if use and not use.least <= len(node.args) - 1 <= use.most:
            yield node, f"{command} takes {use.least} to {use.most} arguments here: one key, and no options or lists"
        for argument in node.args[2:]:
            if any(shape.startswith(f"{PREFIX}:") for shape in script.values.of(argument).shapes):
                yield node, f"{command} is handed a second key: use one command for each"


@rule("lock-px")
def lock_px(script: Script) -> Found:
    """Every SET of a lock carries PX: a lock without a TTL is for ever."""
    for command, node in script.tree.commands():
        if command == "SET" and not (len(node.args) == 5 and literal(node.args[3]) == "PX"):
            yield node, "write redis.call('SET', lock, value, 'PX', ms)"


@rule("strings")
def strings(script: Script) -> Found:
    """What is handed to Redis is known to be a string: servers print numbers differently."""
    for command, node in script.tree.commands():
        for position, argument in enumerate(node.args[1:], 2):
            value, where = script.values.of(argument), f"argument {position} of {command}"
            if value.kinds & NUMBERS:
                yield node, f"{where} can be a number: hand on '0' or string.format('%.0f', …)"
            elif not value.kinds or value.kinds - {"string", "nil", "false"}:
                yield node, f"{where} can be {_told(value)}: make it plain that it is a string"


@rule("digits")
def digits(script: Script) -> Found:
    """A number becomes a string through string.format('%.0f', …): others lose digits above 10^14."""
    tree = script.tree
    loses = {"number", "integer", "any"}
    for node in tree.of(astnodes.Concat):
        for side in (node.left, node.right):
            if script.values.of(side).kinds & loses:
                yield node, "a number that may be large is concatenated: write string.format('%.0f', …)"
    for node in tree.of(astnodes.Call):
        large = any(script.values.of(argument).kinds & loses for argument in node.args)
        if large and tree.is_free(node.func, "tostring"):
            yield node, "a number that may be large goes through tostring: write string.format('%.0f', …)"
        if tree.library(node.func) == ("string", "format") and (not node.args or literal(node.args[0]) != "%.0f"):
            yield node, "the format is '%.0f', as a literal"


@rule("truth")
def truth(script: Script) -> Found:
    """No truth test on what is never false: 0 is true in Lua."""
    for node in script.tree.nodes:
        match node:
            case astnodes.If() | astnodes.ElseIf() | astnodes.While() | astnodes.Repeat():
                tested = node.test
            case astnodes.ULNotOp():
                tested = node.operand
            case astnodes.AndLoOp() | astnodes.OrLoOp():
                tested = node.left
            case _:
                continue
        value = script.values.of(tested)
        if value.kinds and not value.kinds & FALSY:
            yield tested, f"{_told(value)} is never false, so the test is always true: compare, as in == 1"


@rule("time")
def time(script: Script) -> Found:
    """TIME is read at most once on every path, and before any write: it ticks on some servers."""
    for node, command, path in script.reached:
        if command == "TIME" and path.times:
            yield node, "TIME can be read a second time: read it once and keep it"
        if command == "TIME" and path.wrote:
            yield node, "TIME can be read after a write: read it first"


@rule("first-write")
def first_write(script: Script) -> Found:
    """The first write is one that a full server allows and that takes nothing away."""
    due = FIRST_WRITE.get(script.name)
    for node, command, path in script.reached:
        if due and not path.wrote and command != due and command not in READS:
            yield node, f"{command} can be the first write of {script.name}: it must be {due} of the lock"


@rule("replies")
def replies(script: Script) -> Found:
    """A reply is a string, an integer, nil, an array of these, or our error: RESP2 and RESP3 agree on no other."""
    for node in script.tree.of(astnodes.Return):
        function = script.tree.parent(node)
        while function is not None and not isinstance(function, astnodes.LocalFunction):
            function = script.tree.parent(function)
        if function is None:
            values = [script.values.of(value) for value in node.values or []]
            if len(values) > 1:
                yield node, "only the first of several values is sent: return an array, { a, b }"
            for value in values[:1]:
                wrong = ", ".join(sorted(_unsendable(value, "error")))
                if wrong:
                    yield node, f"the reply can be {wrong}: return a string, an integer, nil or an array"


@rule("errors")
def errors(script: Script) -> Found:
    """An error reply begins with our own first word, the only one that is the same everywhere."""
    for node in script.tree.of(astnodes.Call):
        if script.tree.library(node.func) == ("redis", "error_reply"):
            shapes = script.values.of(node.args[0]).shapes if node.args else frozenset()
            if not shapes or not all(shape.startswith("REDISQ_BADARG ") for shape in shapes):
                yield node, "begin it with 'REDISQ_BADARG ' and the argument's name"


def _is_called(tree: Tree, node: Node) -> bool:
    parent = tree.parent(node)
    return isinstance(parent, astnodes.Call) and parent.func is node


def _unsendable(value: Value, *also: str) -> frozenset[str]:
    wrong = value.kinds - {"string", "count", "integer", "nil", "table", *also}
    for part in (*value.fields, *([value.rest] if value.rest else [])):
        wrong |= _unsendable(part)
    return wrong


def _told(value: Value) -> str:
    shapes = {repr(shape) for shape in value.shapes} if "string" in value.kinds else set()
    return " or ".join(sorted(value.kinds - {"string"} | shapes)) or "unknown"
