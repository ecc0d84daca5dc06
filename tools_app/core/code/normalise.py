"""Make a function of whatever a model writes when it is asked for code.

The result is always an expression: an async function without parameters, or the function that the model wrote. What
cannot be parsed becomes the body of one, so that the engine which runs it says what is wrong.
"""

import re
from functools import cache
from typing import Final

import tree_sitter_typescript
from tree_sitter import Language, Node, Parser

EMPTY: Final = "async () => {}"
FENCE: Final = re.compile(r"^\s*```[ \t]*[\w+.-]*[ \t]*\r?\n(?P<code>.*?)\r?\n?[ \t]*```\s*$", re.DOTALL)
FUNCTIONS: Final = frozenset({"arrow_function", "function_expression"})
DECLARATIONS: Final = frozenset({"function_declaration", "generator_function_declaration"})


def normalise(code: str) -> str:
    """The source of a function expression for a model's code. Never raises."""
    text = without_fence(code)
    source = text.encode(errors="replace")
    statements = _statements(source)
    if statements is None:
        return wrapped(text)
    if not statements:
        return EMPTY
    return _as_function(source, statements).decode(errors="replace")


def without_fence(code: str) -> str:
    """Strip one Markdown fence around all of the code, and white space."""
    found = FENCE.match(code)
    return (found["code"] if found else code).strip()


def wrapped(body: str) -> str:
    """The function with this body. Its first line stays the first line."""
    return f"async () => {{ {body}\n}}" if body else EMPTY


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_typescript.language_typescript()))


def parse(source: bytes) -> Node:
    """The syntax tree of a program."""
    return _parser().parse(source).root_node


def _statements(source: bytes) -> list[Node] | None:
    """The statements of a program, comments left out; `None` for one that cannot be parsed."""
    root = parse(source)
    if root.has_error:
        return None
    return [child for child in root.named_children if child.type not in {"comment", "empty_statement"}]


def _as_function(source: bytes, statements: list[Node]) -> bytes:
    exported = _default_export(statements[-1])
    if exported is not None and exported.type not in DECLARATIONS:
        if len(statements) == 1 and _is_function(exported):
            return _text(source, exported)
        return _returning(source, statements[-1], exported)
    if exported is not None:
        called = b"return (" + _text(source, exported) + b")();"
        return _body(source[: statements[-1].start_byte] + called + source[statements[-1].end_byte :])
    only = statements[0] if len(statements) == 1 else None
    if only is not None and only.type in DECLARATIONS:
        name = only.child_by_field_name("name")
        assert name is not None
        return _body(source + b"\nreturn " + _text(source, name) + b"();")
    last = statements[-1]
    if last.type != "expression_statement" or not last.named_children:
        return _body(source)
    expression = last.named_children[0]
    if only is not None and _is_function(expression):
        return _text(source, expression)
    return _returning(source, last, expression)


def _default_export(statement: Node) -> Node | None:
    """The value or declaration of `export default`; `None` for any other statement."""
    if statement.type != "export_statement" or not any(child.type == "default" for child in statement.children):
        return None
    return statement.child_by_field_name("value") or statement.child_by_field_name("declaration")


def _is_function(expression: Node) -> bool:
    while expression.type == "parenthesized_expression" and expression.named_children:
        expression = expression.named_children[0]
    return expression.type in FUNCTIONS


def _returning(source: bytes, statement: Node, expression: Node) -> bytes:
    """The function that returns the value of its last statement."""
    value = b"return (" + _text(source, expression) + b"\n);"
    return _body(source[: statement.start_byte] + value + source[statement.end_byte :])


def _body(body: bytes) -> bytes:
    return b"async () => { " + body + b"\n}"


def _text(source: bytes, node: Node) -> bytes:
    return source[node.start_byte : node.end_byte]
