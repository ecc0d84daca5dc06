"""A resource or a prompt of a server as people read it: text, and the names of what is no text."""

from typing import TYPE_CHECKING, Any, Final

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase
from tools_app.core.mcp.results import prompt_output, resource_output
from tools_app.errors import McpUnavailable
from tools_app.mcp.answers import ServerError, to_json
from tools_app.mcp.pool import Target, pool

if TYPE_CHECKING:
    from mcp.client import Client

MAX_CHARS: Final = 200_000


async def read_content(target: Target, wanted: JSONObject) -> JSONObject:
    """Read from a server. `wanted`: `{"resource": uri}`, or `{"prompt": name, "arguments": {…}}`.

    Shape: `{"text", "is_cut", "files": [{"name", "bytes"}]}`; all of it is a stranger's. Errors: `McpUnavailable`, also
    with the words of a server that refuses.
    """

    async def ask(client: "Client") -> Any:
        if "resource" in wanted:
            return await client.read_resource(wanted["resource"])
        return await client.get_prompt(wanted["prompt"], wanted.get("arguments") or None)

    try:
        result = to_json(await pool().request(target, ask))
    except ServerError as error:
        raise McpUnavailable(
            Phrase("The MCP server {name!r} says: {text}", name=target.server.name, text=error.message[:2_000])
        ) from error
    read = resource_output if "resource" in wanted else prompt_output
    output = read(result)
    return {
        "text": str(output.value)[:MAX_CHARS],
        "is_cut": len(str(output.value)) > MAX_CHARS,
        "files": [{"name": file.name, "bytes": len(file.data)} for file in output.media],
    }
