"""`state.*`: a workspace as functions for code. Each takes one object with named fields and gives JSON."""

from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.code_tool.state.archives import ARCHIVE_FUNCTIONS
from tools_app.code_tool.state.data import DATA_FUNCTIONS
from tools_app.code_tool.state.edits import EDIT_FUNCTIONS
from tools_app.code_tool.state.files import FILE_FUNCTIONS, Function
from tools_app.code_tool.state.searching import SEARCH_FUNCTIONS
from tools_app.core.files.workspace import Workspace
from tools_app.errors import CodeInvalid
from tools_app.file_tools.lookalikes import naming_alike
from tools_app.file_tools.making import own_pattern

FUNCTIONS: Final[dict[str, Function]] = {
    **FILE_FUNCTIONS,
    **DATA_FUNCTIONS,
    **SEARCH_FUNCTIONS,
    **EDIT_FUNCTIONS,
    **ARCHIVE_FUNCTIONS,
}
ONCE: Final = frozenset({"appendFile", "mv", "symlink", "replaceInFile", "replaceInFiles", "applyEdits", "archive"})
"""Functions that do something else when they are called again; an archive may then contain itself."""


PATHS: Final = frozenset({"path", "pattern", "source", "target", "other"})
"""The fields that name files."""


class StateFunctions:
    """The functions of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def repeats(self, name: str) -> bool:
        """Whether a call that was cut may be made again."""
        return name.removeprefix("state.") not in ONCE

    async def run(self, name: str, value: JSONObject) -> JSONValue:
        """Call a function. Errors: `CodeInvalid` for the call, `FileFailed` for the files."""
        function = FUNCTIONS.get(name.removeprefix("state."))
        if function is None:
            raise CodeInvalid(f"There is no function {name}. state has: {', '.join(sorted(FUNCTIONS))}.")
        async with naming_alike(self._workspace):
            return await function(self._workspace, await _with_own_paths(self._workspace, value))


async def _with_own_paths(files: Workspace, value: JSONObject) -> JSONObject:
    """The arguments with paths of the workspace, also where they name it as programs do (`/workspace/a.py`)."""
    texts = {key: given for key, given in value.items() if key in PATHS and isinstance(given, str)}
    named: JSONObject = {key: await own_pattern(files, given) for key, given in texts.items()}
    edits = value.get("edits")
    if isinstance(edits, list):
        named["edits"] = [await _with_own_paths(files, edit) if isinstance(edit, dict) else edit for edit in edits]
    return {**value, **named}
