"""What the expressions of a script can hold, whatever path it takes: kinds of value and shapes of strings.

The kinds are those of Lua, with ``false`` apart from ``boolean`` (a missing reply is false) and numbers in three kinds:
``count`` (a literal, a loop's counter, a length: small and integral), ``integer`` (a reply of Redis) and ``number`` (a
sum, anything else). A ``status`` is a reply such as OK, an ``error`` an error reply, a ``map`` a table with named
fields; ``any`` is unknown.

A shape is a string with its unknown parts as ``*`` and the prefix of the queue as ``<prefix>``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from luaparser import astnodes  # type: ignore[import-untyped]

from tests.support.lua_subset import HOLE, PREFIX
from tests.support.lua_tree import Binding, Node, Tree, children, literal

MAX_SHAPES = 16
MAX_DEPTH = 5
NUMBERS = frozenset({"count", "integer", "number"})
NEVER = frozenset({"nil", "false"})
FALSY = NEVER | {"boolean", "any"}


@dataclass(frozen=True, slots=True)
class Value:
    """Everything an expression can be; nothing as long as nothing is known."""

    kinds: frozenset[str] = frozenset()
    shapes: frozenset[str] = frozenset()
    """Of the strings."""
    fields: tuple[Value, ...] = ()
    """Of the tables: the first fields."""
    rest: Value | None = None
    """Of the tables: any field."""

    def keep(self, kinds: frozenset[str]) -> Value:
        """What is left of it if only these kinds can be."""
        return Value(self.kinds & kinds, self.shapes, self.fields, self.rest)

    def join(self, other: Value, depth: int = 0) -> Value:
        """What is one or the other."""
        if depth > MAX_DEPTH:
            return ANY
        pairs = zip_longest(self.fields, other.fields)
        fields = tuple((one or NOTHING).join(two or NOTHING, depth + 1) for one, two in pairs)
        rest = self.rest.join(other.rest, depth + 1) if self.rest and other.rest else self.rest or other.rest
        return Value(self.kinds | other.kinds, _few(self.shapes | other.shapes), fields, rest)

    def field(self, position: int | None) -> Value:
        """The field at a position counted from 1, or any field."""
        fields = self.fields if position is None else self.fields[position - 1 : position]
        return join([NIL, *fields, *([self.rest] if self.rest else [])])


def join(values: Iterable[Value]) -> Value:
    """What is any of these."""
    result = NOTHING
    for value in values:
        result = result.join(value)
    return result


def of_kinds(*kinds: str) -> Value:
    """A value of some kinds; a string of them can be any string."""
    return Value(frozenset(kinds), frozenset({HOLE} if "string" in kinds else ()))


def _few(shapes: frozenset[str]) -> frozenset[str]:
    shapes = frozenset(shape.replace(2 * HOLE, HOLE) for shape in shapes)
    # A shape that ends open holds all that begin like it.
    open_ended = [shape for shape in shapes if shape.endswith(HOLE)]
    shapes -= {one for one in shapes for other in open_ended if one != other and one.startswith(other[:-1])}
    if len(shapes) <= MAX_SHAPES:
        return shapes
    # What all begin with.
    low, high = min(shapes), max(shapes)
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return frozenset({low[:same] + HOLE})


NOTHING = Value()
ANY, NIL, COUNT, INTEGER, NUMBER = (of_kinds(kind) for kind in ("any", "nil", "count", "integer", "number"))
STRING, MISSABLE = of_kinds("string"), of_kinds("string", "false")
ARRAY = Value(frozenset({"table"}), rest=STRING)

REPLIES = {
    **dict.fromkeys(["GET", "GETEX", "HGET", "LINDEX", "LPOP", "RPOP", "ZSCORE"], MISSABLE),
    **dict.fromkeys(["TIME", "ZRANGEBYSCORE", "ZRANGE", "LRANGE"], ARRAY),
    **dict.fromkeys(["SET", "TYPE"], of_kinds("status")),
    **dict.fromkeys(["DEL", "EXISTS", "EXPIRE", "PEXPIRE", "PERSIST", "PTTL", "TTL", "SETNX"], INTEGER),
    **dict.fromkeys(["HSET", "HSETNX", "HDEL", "HEXISTS", "SISMEMBER", "ZADD", "ZREM", "ZCARD"], INTEGER),
    **dict.fromkeys(["LLEN", "LPUSH", "RPUSH", "LREM"], INTEGER),
}
"""What a command answers; others: anything."""

FUNCTIONS: dict[str | tuple[str, str], Value] = {
    ("redis", "error_reply"): of_kinds("error"),
    ("redis", "status_reply"): of_kinds("status"),
    ("string", "format"): STRING,
    ("string", "sub"): STRING,
    ("string", "find"): of_kinds("count", "nil"),
    "tostring": STRING,
    "type": STRING,
    "tonumber": of_kinds("number", "nil"),
}
"""What a function of a library answers; others: anything."""


class Values:
    """What each expression of a script can hold, each local taken over all paths."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._locals: dict[Binding, Value] = {}
        self._results: dict[Binding, list[Value]] = {}
        self._seen: dict[int, Value] = {}
        self._narrowed: dict[Binding, frozenset[str]] = {}
        self._function: Binding | None = None
        self._changed = True
        while self._changed:
            self._changed = False
            self._visit(tree.body)

    def of(self, node: Node) -> Value:
        """What an expression of the script can hold."""
        return self._seen.get(id(node), ANY)

    def _visit(self, node: Node) -> None:
        match node:
            case astnodes.LocalAssign() | astnodes.Assign():
                for target, value in zip(node.targets, self._spread(node.values, len(node.targets)), strict=True):
                    self._assign(target, value)
            case astnodes.LocalFunction():
                binding = self._tree.binding(node.name)
                outer, self._function = self._function, binding
                self._visit(node.body)
                if not (node.body.body and isinstance(node.body.body[-1], astnodes.Return)):
                    self._answer([])
                self._function = outer
            case astnodes.Return():
                if self._function:
                    self._answer(self._spread(node.values or [], 0))
                else:
                    self._spread(node.values or [], 0)
            case astnodes.Fornum():
                for bound in (node.start, node.stop, node.step):
                    if isinstance(bound, astnodes.Node):
                        self._value(bound)
                self._assign(node.target, COUNT)
                self._visit(node.body)
            case astnodes.Forin():
                for target, value in zip(node.targets, self._iterated(node.iter, len(node.targets)), strict=True):
                    self._assign(target, value)
                self._visit(node.body)
            case astnodes.If() | astnodes.ElseIf():
                self._value(node.test)
                narrowed = self._narrowed
                self._narrowed = narrowed | self._tested(node.test)
                self._visit(node.body)
                self._narrowed = narrowed
                if node.orelse:
                    self._visit(node.orelse)
            case astnodes.Expression() if not isinstance(node, astnodes.Statement) or isinstance(node, astnodes.Call):
                self._value(node)
            case _:
                for child in children(node):
                    self._visit(child)

    def _tested(self, test: Node) -> dict[Binding, frozenset[str]]:
        # type(x) == 'string' holds for x in the branch.
        if isinstance(test, astnodes.EqToOp) and isinstance(test.left, astnodes.Call) and test.left.args:
            binding = self._tree.binding(test.left.args[0])
            if binding and self._tree.is_free(test.left.func, "type") and literal(test.right) == "string":
                return {binding: frozenset({"string"})}
        return {}

    def _assign(self, target: Node, value: Value) -> None:
        binding = self._tree.binding(target)
        if isinstance(target, astnodes.Index):
            self._value(target.idx) if target.notation is astnodes.IndexNotation.SQUARE else None
            self._value(target.value)
            binding = self._tree.binding(target.value)
            value = Value(frozenset({"table"}), rest=value)
        if binding:
            old = self._locals.get(binding, NOTHING)
            self._locals[binding] = old.join(value)
            self._changed |= self._locals[binding] != old

    def _answer(self, values: Sequence[Value]) -> None:
        assert self._function
        old = self._results.get(self._function)
        # What one return leaves out and another has is nil.
        new = [(a or NIL).join(b or NIL) for a, b in zip_longest(values, values if old is None else old)]
        self._results[self._function] = new
        self._changed |= new != old

    def _iterated(self, iterators: Sequence[Node], count: int) -> list[Value]:
        for node in iterators:
            self._value(node)
        match iterators:
            case [astnodes.Call() as call] if self._tree.is_free(call.func, "ipairs") and len(call.args) == 1:
                element = self.of(call.args[0]).field(None)
                return [COUNT, element.keep(element.kinds - {"nil"}), ANY][:count]
        return [ANY] * count

    def _spread(self, nodes: Sequence[Node], count: int) -> list[Value]:
        """The values of a list of expressions, at least ``count``: the last one's call gives all its values."""
        values = [self._value(node) for node in nodes]
        if nodes and isinstance(nodes[-1], astnodes.Call):
            binding = self._tree.binding(nodes[-1].func)
            values[-1:] = self._results.get(binding, [NOTHING]) if binding else values[-1:]
        values += [NIL] * (count - len(values))
        return values[:count] if count else values

    def _value(self, node: Node) -> Value:
        value = self._seen[id(node)] = self._evaluate(node)
        return value

    def _evaluate(self, node: Node) -> Value:
        match node:
            case astnodes.Nil():
                return NIL
            case astnodes.FalseExpr():
                return of_kinds("false")
            case astnodes.TrueExpr():
                return of_kinds("boolean")
            case astnodes.Number():
                return COUNT if isinstance(node.n, int) else NUMBER
            case astnodes.String():
                return Value(frozenset({"string"}), frozenset({literal(node) or ""}))
            case astnodes.Name():
                binding = self._tree.binding(node)
                value = self._locals.get(binding, NOTHING) if binding and not binding.function else ANY
                return value.keep(self._narrowed[binding]) if binding in self._narrowed else value
            case astnodes.Index():
                return self._index(node)
            case astnodes.Call():
                return self._call(node)
            case astnodes.Table():
                return self._table(node)
            case astnodes.Concat():
                left, right = self._value(node.left), self._value(node.right)
                return Value(frozenset({"string"}), _few(frozenset(a + b for a in _text(left) for b in _text(right))))
            case astnodes.AndLoOp():
                left, right = self._value(node.left), self._value(node.right)
                return left.keep(FALSY).join(right)
            case astnodes.OrLoOp():
                left, right = self._value(node.left), self._value(node.right)
                return left.keep(left.kinds - NEVER).join(right)
        values = [self._value(child) for child in children(node) if isinstance(child, astnodes.Expression)]
        match node:
            case astnodes.ULengthOP():
                return COUNT
            case astnodes.ULNotOp() | astnodes.RelOp():
                return of_kinds("boolean")
            case astnodes.AddOp() | astnodes.SubOp() | astnodes.UMinusOp():
                return COUNT if all(value.kinds <= {"count"} for value in values) else NUMBER
            case astnodes.AriOp():
                return NUMBER
        return ANY

    def _index(self, node: Node) -> Value:
        position = node.idx.n if isinstance(node.idx, astnodes.Number) and isinstance(node.idx.n, int) else None
        if node.notation is astnodes.IndexNotation.SQUARE:
            self._value(node.idx)
        if self._tree.is_free(node.value, "ARGV"):
            return Value(frozenset({"string", "nil"}), frozenset({PREFIX if position == 1 else HOLE}))
        base = self._value(node.value)
        if "status" in base.kinds and node.notation is astnodes.IndexNotation.DOT and node.idx.id == "ok":
            return STRING
        return base.field(position) if not base.kinds - {"table", "nil"} else ANY

    def _call(self, node: Node) -> Value:
        arguments = self._spread(node.args, 0)
        binding = self._tree.binding(node.func)
        if binding:
            if binding.function:
                for parameter, value in zip_longest(binding.function.args, arguments):
                    if parameter is not None:
                        self._assign(parameter, value or NIL)
            results = self._results.get(binding, [NOTHING]) if binding.function else [ANY]
            return results[0] if results else NIL
        library, command = self._tree.library(node.func), self._tree.command(node)
        if command is not None:
            reply = REPLIES.get(command, ANY)
            return reply.join(of_kinds("error")) if library == ("redis", "pcall") else reply
        if library == ("math", "min"):
            return COUNT if all(value.kinds <= {"count"} for value in arguments) else NUMBER
        if library:
            return FUNCTIONS.get(library, ANY)
        return FUNCTIONS.get(node.func.id, ANY) if self._tree.is_free(node.func) else ANY

    def _table(self, node: Node) -> Value:
        named = [field for field in node.fields if field.key is not None]
        for field in named:
            self._value(field.value)
        fields = tuple(self._spread([field.value for field in node.fields if field.key is None], 0))
        return Value(frozenset({"map" if named else "table"}), fields=fields)


def _text(value: Value) -> frozenset[str]:
    # What a value reads as in a concatenation; nothing as long as nothing is known of it.
    return value.shapes | (frozenset({HOLE}) if value.kinds - {"string", "nil"} else frozenset())
