"""Writes functions as LLVM's text: values with their types, structured control flow, no SSA by hand.

Mutable variables are stack slots; LLVM's SROA pass turns them into registers. Nothing here knows what
the functions are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

BIT, I32, I64, POINTER = "i1", "i32", "i64", "ptr"

_UNLIKELY = ", !prof !0"
_LIKELY = ", !prof !1"


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: its text and its LLVM type."""

    text: str
    type: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


Number = Value | int
"""An operand; a bare number takes the type of the operation."""


def bit(value: bool) -> Value:
    """A constant truth value."""
    return Value("true" if value else "false", BIT)


class Function:
    """One function under construction; statements go where the last one went."""

    def __init__(
        self,
        name: str,
        parameters: Sequence[tuple[str, str]],
        result: str = I64,
        *,
        local: bool = True,
    ) -> None:
        """`parameters`: (name, type); `local`: only this module calls it, and it may be inlined."""
        self._names = 0
        self._slots: list[str] = []
        self._body: list[str] = []
        self._result = result
        self._ended = False
        linkage = "internal " if local else ""
        text = ", ".join(f"{type_} %{name}" for name, type_ in parameters)
        self._head = f"define {linkage}{result} @{name}({text}) nounwind"
        self.arguments = {name: Value(f"%{name}", type_) for name, type_ in parameters}

    def __getitem__(self, parameter: str) -> Value:
        return self.arguments[parameter]

    def source(self, attributes: str = "") -> str:
        """The finished text."""
        if not self._ended:
            self._body.append("  unreachable")
        lines = [
            f"{self._head} {attributes} {{",
            "b.in:",
            *self._slots,
            "  br label %b.start",
            "b.start:",
        ]
        return "\n".join([*lines, *self._body, "}", ""])

    # Values

    def op(self, text: str, type_: str) -> Value:
        """The result of one instruction."""
        self._names += 1
        name = f"%v{self._names}"
        self._body.append(f"  {name} = {text}")
        return Value(name, type_)

    def _binary(self, name: str, a: Number, b: Number) -> Value:
        type_ = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else I64
        return self.op(f"{name} {type_} {_bare(a)}, {_bare(b)}", type_)

    def add(self, a: Number, b: Number) -> Value:
        return self._binary("add", a, b)

    def sub(self, a: Number, b: Number) -> Value:
        return self._binary("sub", a, b)

    def mul(self, a: Number, b: Number) -> Value:
        return self._binary("mul", a, b)

    def and_(self, a: Number, b: Number) -> Value:
        return self._binary("and", a, b)

    def or_(self, a: Number, b: Number) -> Value:
        return self._binary("or", a, b)

    def xor(self, a: Number, b: Number) -> Value:
        return self._binary("xor", a, b)

    def shl(self, a: Number, b: Number) -> Value:
        return self._binary("shl", a, b)

    def lshr(self, a: Number, b: Number) -> Value:
        return self._binary("lshr", a, b)

    def not_(self, a: Value) -> Value:
        return self._binary("xor", a, Value("true", BIT))

    def compare(self, how: str, a: Number, b: Number) -> Value:
        """`how`: eq, ne, ult, ule, slt, sle ..."""
        type_ = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else I64
        return self.op(f"icmp {how} {type_} {_bare(a)}, {_bare(b)}", BIT)

    def select(self, condition: Value, a: Number, b: Number) -> Value:
        type_ = a.type if isinstance(a, Value) else b.type if isinstance(b, Value) else I64
        return self.op(f"select {condition}, {type_} {_bare(a)}, {type_} {_bare(b)}", type_)

    def zext(self, a: Value, type_: str = I64) -> Value:
        return a if a.type == type_ else self.op(f"zext {a} to {type_}", type_)

    def trunc(self, a: Value, type_: str) -> Value:
        return a if a.type == type_ else self.op(f"trunc {a} to {type_}", type_)

    def call(self, name: str, arguments: Sequence[Value], result: str = I64) -> Value:
        """Call a function by name, `@name`, or through a pointer, `%name`."""
        text = ", ".join(str(a) for a in arguments)
        if result == "void":
            self._body.append(f"  call void {name}({text})")
            return Value("void", "void")
        return self.op(f"call {result} {name}({text})", result)

    # Memory

    def at(self, base: Value, index: Number, type_: str = I64) -> Value:
        """The address of element `index` of an array."""
        return self.op(f"getelementptr {type_}, {base}, i64 {_bare(index)}", POINTER)

    def load(self, base: Value, index: Number = 0, type_: str = I64) -> Value:
        return self.op(f"load {type_}, {self.at(base, index, type_)}", type_)

    def store(self, base: Value, index: Number, value: Number, type_: str = I64) -> None:
        self._body.append(f"  store {type_} {_bare(value)}, {self.at(base, index, type_)}")

    def increase(self, base: Value, index: Number, by: Number) -> None:
        """Add to an element of an array of 64-bit numbers."""
        place = self.at(base, index)
        total = self.add(self.op(f"load i64, {place}", I64), by)
        self._body.append(f"  store {total}, {place}")

    def statement(self, text: str) -> None:
        """An instruction without a result."""
        self._body.append(f"  {text}")

    def variable(self, start: Number = 0, type_: str = I64) -> Value:
        """A mutable variable: use `get` and `set`."""
        name = f"%x{len(self._slots)}"
        self._slots.append(f"  {name} = alloca {type_}")
        place = Value(name, POINTER)
        self.set(place, start, type_)
        return place

    def get(self, variable: Value, type_: str = I64) -> Value:
        return self.op(f"load {type_}, {variable}", type_)

    def set(self, variable: Value, value: Number, type_: str = I64) -> None:
        self._body.append(f"  store {type_} {_bare(value)}, {variable}")

    # Control

    def _label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def _begin(self, label: str) -> None:
        if not self._ended:
            self._body.append(f"  br label %{label}")
        self._body.append(f"{label}:")
        self._ended = False

    @contextmanager
    def when(self, condition: Value, *, likely: bool | None = None) -> Iterator[None]:
        """What is written inside happens only if the condition holds."""
        then, after = self._label(), self._label()
        weight = "" if likely is None else _LIKELY if likely else _UNLIKELY
        self._body.append(f"  br {condition}, label %{then}, label %{after}{weight}")
        self._ended = True
        self._begin(then)
        yield
        self._begin(after)

    @contextmanager
    def loop(self, condition: Callable[[], Value]) -> Iterator[None]:
        """Repeat what is written inside while the condition, evaluated each time, holds."""
        head, body, after = self._label(), self._label(), self._label()
        self._begin(head)
        holds = condition()
        self._body.append(f"  br {holds}, label %{body}, label %{after}")
        self._ended = True
        self._begin(body)
        yield
        if not self._ended:
            self._body.append(f"  br label %{head}")
            self._ended = True
        self._begin(after)

    def return_(self, value: Number | None = None) -> None:
        """Leave the function; what follows in the same block is not reached."""
        self._body.append("  ret void" if value is None else f"  ret {self._result} {_bare(value)}")
        self._ended = True


def _bare(value: Number) -> str:
    return value.text if isinstance(value, Value) else str(_signed(value))


def _signed(value: int) -> int:
    """The same 64 bits as LLVM's text wants them."""
    return value - (1 << 64) if value >= 1 << 63 else value


MODULE_END = """
!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{!"branch_weights", i32 2000, i32 1}
"""
