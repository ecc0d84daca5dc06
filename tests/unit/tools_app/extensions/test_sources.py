"""Sources that are described: in JavaScript and TypeScript, and those that are no extension."""

from typing import Any

import pytest

from tools_app.core.extensions.manifest import parse_manifest
from tools_app.errors import ExtensionInvalid
from tools_app.extensions.guest import clean_source
from tools_app.extensions.runs import describe

MANIFEST = {"name": "x", "version": "1"}


async def surface_of(source: str, **fields: Any) -> Any:
    return await describe(clean_source(source), parse_manifest({**MANIFEST, **fields}))


async def test_a_source_describes_its_tools() -> None:
    source = """```ts
    ({ tools: {
      add: {
        description: "Add", parameters: { a: { type: "number" } }, required: ["a"],
        execute: async ({ a }: { a: number }): Promise<number> => a
      },
      whole: {
        parameters: { type: "object", properties: { type: { type: "string" } }, additionalProperties: false },
        execute() {}
      },
      none: { execute: () => 1 }
    } });
    ```"""
    found = await surface_of(source)
    assert [each.name for each in found.tools] == ["add", "whole", "none"]
    add, whole, none = found.tools
    assert add.input_schema == {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    assert whole.input_schema["additionalProperties"] is False
    assert none.input_schema == {"type": "object", "properties": {}}
    assert (add.description, none.description) == ("Add", "")


async def test_hooks_are_those_of_the_manifest() -> None:
    source = "({ hooks: { beforeTurn() {}, onChunk() {} } })"
    found = await surface_of(source, hooks=["onChunk", "beforeTurn"])
    assert found.hooks == ("beforeTurn", "onChunk")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("({ add: { execute: async () => 1 } })", "top level are not accepted"),
        ("({ tools: { add: { description: 'x' } } })", 'no function "execute"'),
        ("({ tools: {}, other: {} })", 'no "other"'),
        ("({ tools: [] })", "are objects"),
        ("42", "object expression"),
        ("({ tools: { ", "SyntaxError"),
        ("({ tools: {} })", "neither tools nor hooks"),
        ("({ tools: { 'a b': { execute() {} } } })", "cannot be called"),
        ("({ tools: { a: { parameters: 5, execute() {} } } })", "must be an object"),
        ("({ tools: { a: { parameters: { x: { type: 'nonsense' } }, execute() {} } } })", "JSON Schema"),
        ("({ tools: { a: { parameters: { x: { $ref: 'https://example.org/s' } }, execute() {} } } })", "JSON Schema"),
        ("({ hooks: { beforeTurn() {} } })", "names the hooks"),
        ("({ hooks: { onEverything() {} } })", "no hook 'onEverything'"),
        ("({ tools: { a: { execute() {} } } }), Deno.exit(0)", "ended before"),
        ("(fetch('https://example.org'), await fetch('https://example.org'))", "cannot call its host"),
        ("({ tools: { a: { description: 'x'.repeat(2_000_000), execute() {} } } })", "more output"),
    ],
)
async def test_what_is_no_extension_is_refused(source: str, reason: str) -> None:
    with pytest.raises(ExtensionInvalid, match=reason):
        await surface_of(source)


async def test_a_source_that_never_ends_is_refused(settings: Any) -> None:
    settings.THINK_SANDBOX = {"seconds": 1.0}
    with pytest.raises(ExtensionInvalid, match="timed out"):
        await surface_of("(() => { for (;;) ; })()")
