"""Scripts of a skill, run in the sandbox: JavaScript and TypeScript, Python, and the shell.

A script has no network and no files of the machine. It gets what the model passes, and the texts of its skill:

- `.js`, `.mjs`, `.ts`: `export default async (input, { files }) => …`, or a module whose default is a value. `input` is
  what the model passes; `files` has the skill's text files by path. The files of the workspace are `state.*`.
- `.py`: `skill_input` and `skill_files` are there as globals; the value of the last expression is the result. The
  files of the workspace are in the working directory.
- `.sh`, `.bash`: the input as JSON in `$SKILL_INPUT`; the files of the workspace are its root.
"""

import re
from dataclasses import replace
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.code_tool.python import PythonRunner, python_limits
from tools_app.code_tool.tool import CodeRunner, ExecuteOptions, default_limits
from tools_app.core.code.catalogue import Catalogue
from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import ToolContext
from tools_app.errors import SkillInvalid
from tools_app.shell.tool import BashOptions, ShellRunner
from tools_app.skills.skill import Skill, extension_of
from tools_app.workspace.stores.memory import MemoryWorkspace

SECONDS: Final = 30.0
MAX_SCRIPT_BYTES: Final = 200_000
MAX_TEXTS_BYTES: Final = 1_000_000
_SCRIPT_MODULES: Final = frozenset({".js", ".mjs", ".ts"})
_SHELLS: Final = frozenset({".sh", ".bash"})
_LOCAL_IMPORT: Final = re.compile(r"^\s*(?:import|export)\b[^;\n]*\bfrom\s*[\"']\.", re.MULTILINE)


async def run_script(
    context: ToolContext, skill: Skill, path: str, given: JSONValue, workspace: Workspace | None
) -> JSONObject:
    """Run a script of a skill for at most 30 seconds, not counting the wait for a place.

    Durability: as that of the tools for code; a run that a crash cut runs again. Errors: `SkillInvalid` for what is no
    script, `ToolError` with the words for the model for one that fails, `SandboxUnavailable`.
    """
    source = await skill.files.read(path)
    if source is None:
        raise SkillInvalid(f"The skill {skill.head.name!r} has no file {path!r}.")
    if len(source) > MAX_SCRIPT_BYTES:
        raise SkillInvalid(f"A script has at most {MAX_SCRIPT_BYTES} bytes.")
    text, kind = source.decode(errors="replace"), extension_of(path)
    if kind in _SCRIPT_MODULES:
        return await _run_module(context, skill, f"script{kind}", text, given, workspace)
    if kind == ".py":
        prelude = f"skill_input = __import__('json').loads({dump(given)!r})\n"
        texts = await _texts(skill)
        prelude += f"skill_files = __import__('json').loads({dump(dict(texts))!r})\n"
        limits = replace(python_limits(), seconds=SECONDS)
        return await PythonRunner(workspace=workspace, sandbox=None, limits=limits).run(context, prelude + text)
    if kind in _SHELLS:
        options = BashOptions(seconds=SECONDS, environment={"SKILL_INPUT": dump(given)})
        place = MemoryWorkspace() if workspace is None else workspace
        return await ShellRunner(workspace=place, options=options).run(context, text)
    raise SkillInvalid(f"{path!r} is no script: those end in .js, .mjs, .ts, .py, .sh or .bash.")


async def _run_module(
    context: ToolContext, skill: Skill, name: str, text: str, given: JSONValue, workspace: Workspace | None
) -> JSONObject:
    if _LOCAL_IMPORT.search(text):
        raise SkillInvalid("A script cannot import other files; it finds them in `files`.")
    options = ExecuteOptions(workspace=workspace, modules={name: text})
    runner = CodeRunner(catalogue=Catalogue([]), options=options, limits=replace(default_limits(), seconds=SECONDS))
    about = dump({"files": dict(await _texts(skill))})
    code = (
        f'async () => {{ const script = (await load("{name}")).default;\n'
        f'return typeof script === "function" ? await script({dump(given)}, {about}) : script; }}'
    )
    return await runner.run(context, code)


async def _texts(skill: Skill) -> dict[str, str]:
    """The text files of a skill by path, the first megabyte of them."""
    found: dict[str, str] = {}
    room = MAX_TEXTS_BYTES
    for file in await skill.files.list():
        if file.size > room:
            continue
        data = await skill.files.read(file.path)
        if data is None or b"\0" in data:
            continue
        found[file.path] = data.decode(errors="replace")
        room -= len(data)
    return found
