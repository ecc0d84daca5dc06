"""The tools by which a model uses skills, and what their scripts can and cannot do."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.files_people_bring import DOCUMENTS, REFUSED, Brought
from tests.pictures import PNG
from tests.unit.tools_app.core.files.calling import call
from tests.unit.tools_app.sandbox.probes import PROBES
from tests.unit.tools_app.skills.skill_texts import text_of
from tools_app.calls.run import execute
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import SkillInvalid, ToolError
from tools_app.skills.library import load_skills
from tools_app.skills.sources import SkillsInCode
from tools_app.skills.tools import create_skill_tools
from tools_app.workspace.stores.memory import MemoryWorkspace

pytestmark = pytest.mark.django_db(transaction=True)

SUM = (
    "export default async (input, {files}) => ({sum: input.numbers.reduce((a, b) => a + b), about: files['notes.txt']})"
)
NUMBERS = iter(range(10_000))


async def tools_of(scripts: Mapping[str, str | bytes], workspace: MemoryWorkspace | None = None) -> dict[str, Tool]:
    text = text_of("sums", body="Run scripts/sum.js.").replace("---\nRun", "allowed-tools: read\n---\nRun")
    library = await load_skills([SkillsInCode({"sums": (text, scripts), "tea": text_of("tea")})])
    return {tool.name: tool for tool in create_skill_tools(library, workspace)}


async def run(tools: dict[str, Tool], path: str, given: Any = None) -> ToolResult:
    """Run a script as a turn does."""
    number = next(NUMBERS)
    context = ToolContext(
        call_id=f"c{number}", tool_name="run_skill_script", user_id=None, agent="a", instance_name="i", turn_id="t",
        attempt=1, idempotency_key=f"t:c{number}",
    )  # fmt: skip
    made = ToolCall(call_id=context.call_id, tool_name=context.tool_name, input={
        "name": "sums", "path": path, "input": given,
    })  # fmt: skip
    results = [item async for item in execute(tools["run_skill_script"], made, context)]
    assert isinstance(results[-1], ToolResult)
    return results[-1]


async def test_a_skill_is_read_with_its_files() -> None:
    tools = await tools_of({"scripts/sum.js": SUM, "notes.txt": "one\ntwo"})
    assert list(tools) == ["activate_skill", "read_skill_resource", "run_skill_script"]
    assert tools["activate_skill"].input_schema["properties"]["name"]["enum"] == ["sums", "tea"]
    assert await call(tools["activate_skill"], name="sums") == {
        "name": "sums",
        "instructions": "Run scripts/sum.js.",
        "files": [{"path": "notes.txt", "size": "7 B"}, {"path": "scripts/sum.js", "size": f"{len(SUM)} B"}],
        "recommendedTools": ["read"],
    }
    assert await call(tools["activate_skill"], name="tea") == {"name": "tea", "instructions": "Do it."}
    with pytest.raises(SkillInvalid, match=r"Did you mean tea\?"):
        await call(tools["activate_skill"], name="teas")


async def test_a_file_of_a_skill_is_read_as_files_are() -> None:
    tools = await tools_of({"notes.txt": "one\ntwo\nthree", "logo.png": PNG, "blob": b"\0\1\2"})
    read = tools["read_skill_resource"]
    page = await call(read, name="sums", path="notes.txt", offset=2, limit=1)
    assert page == {"path": "notes.txt", "content": "2\ttwo", "totalLines": 3, "fromLine": 2, "toLine": 2}
    picture = await call(read, name="sums", path="logo.png")
    assert isinstance(picture, ToolOutput)
    assert picture.media[0].data == PNG
    assert (await call(read, name="sums", path="blob"))["unsupported"] is True
    with pytest.raises(SkillInvalid, match="has no file"):
        await call(read, name="sums", path="SKILL.md")


@pytest.mark.parametrize("brought", [b for b in DOCUMENTS if b.media_type != "text/html"], ids=str)
async def test_a_document_of_a_skill_is_read_as_its_text(brought: Brought) -> None:
    tools = await tools_of({brought.name: brought.data})
    shown = await call(tools["read_skill_resource"], name="sums", path=brought.name, offset=1)
    lines = [line.partition("\t")[2] for line in shown.get("content", "").split("\n")]
    text = "\n".join(lines) if "content" in shown else f"({shown['note']})"
    assert text.removesuffix("\n") == brought.expected


async def test_what_cannot_be_read_of_a_skill_is_named() -> None:
    [film] = [brought for brought in REFUSED if brought.name == "clip.mp4"]
    tools = await tools_of({"clip.mp4": film.data})
    shown = await call(tools["read_skill_resource"], name="sums", path="clip.mp4")
    assert (shown["unsupported"], shown["note"]) == (True, film.expected)


async def test_a_script_gets_its_input_and_the_texts_of_its_skill() -> None:
    tools = await tools_of({"scripts/sum.js": SUM, "notes.txt": "about"})
    result = await run(tools, "scripts/sum.js", {"numbers": [1, 2, 39]})
    assert result.output["value"] == {"sum": 42, "about": "about"}


async def test_a_script_in_typescript_may_have_a_value_for_its_result() -> None:
    tools = await tools_of({"a.ts": "const n: number = 6; export default n * 7"})
    assert (await run(tools, "a.ts")).output["value"] == 42


async def test_a_script_works_on_the_workspace() -> None:
    workspace = MemoryWorkspace()
    await workspace.write_file("/in.txt", "hello")
    scripts = {
        "a.js": "export default async () => { const t = await state.readFile({path: '/in.txt'}); "
        "await state.writeFile({path: '/out.txt', content: t.toUpperCase()}); return t }",
        "b.sh": 'cat /out.txt; echo " $SKILL_INPUT" | tee /more.txt',
    }
    tools = await tools_of(scripts, workspace)
    assert (await run(tools, "a.js")).output["value"] == "hello"
    assert (await run(tools, "b.sh", {"a": 1})).output["stdout"] == 'HELLO {"a":1}\n'
    assert await workspace.read_file("/more.txt") == ' {"a":1}\n'


@pytest.mark.parametrize("name", ["read sync", "node fs", "fetch", "command", "environment", "ffi", "write", "worker"])
async def test_a_script_cannot_get_out(name: str) -> None:
    probe = PROBES[name].replace("FILE", "/etc/hostname").replace("PORT", "9")
    tools = await tools_of({"a.js": f"export default async () => {{ {probe} }}"})
    result = await run(tools, "a.js")
    assert result.is_error, result.output


async def test_a_script_that_never_ends_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools_app.skills.scripts.SECONDS", 1.0)
    tools = await tools_of({"a.js": "export default () => { for (;;) {} }", "b.js": "export default 1"})
    result = await run(tools, "a.js")
    assert result.is_error
    assert "timed out" in str(result.output)
    assert (await run(tools, "b.js")).output["value"] == 1


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("a.rb", "puts 1", "is no script"),
        ("a.js", "import x from './b.js'; export default x", "cannot import other files"),
        ("a.js", "x" * 200_001, "at most 200000 bytes"),
    ],
)
async def test_what_cannot_be_run_is_refused(path: str, text: str, reason: str) -> None:
    result = await run(await tools_of({path: text}), path)
    assert result.is_error
    assert reason in str(result.output)
    assert "has no file" in str((await run(await tools_of({}), "none.js")).output)


async def test_a_script_that_fails_says_so_with_its_output() -> None:
    tools = await tools_of({"a.js": "export default () => { console.log('first'); throw new Error('no luck') }"})
    result = await run(tools, "a.js")
    assert result.is_error
    assert "no luck" in str(result.output)
    assert "first" in str(result.output)


async def test_input_that_looks_like_code_stays_data() -> None:
    tools = await tools_of({"a.js": "export default (input) => input"})
    hostile = {"a": "</script>`${1}` \u2028 */ '\"); throw 1 //", "__proto__x": [None, 1.5, json.dumps({"b": "\\"})]}
    assert (await run(tools, "a.js", hostile)).output["value"] == hostile


async def test_python_of_a_skill(python_is_there: bool) -> None:
    tools = await tools_of({"a.py": "print('hi')\nskill_input['n'] * 2, skill_files['notes.txt']", "notes.txt": "x"})
    result = await run(tools, "a.py", {"n": 21})
    if python_is_there:
        assert result.output["value"] == [42, "x"]
    else:
        assert "install_sandbox_python" in str(result.output)


def test_errors_of_skills_are_errors_of_tools() -> None:
    assert issubclass(SkillInvalid, ToolError)
