"""The tool by which a model reads on in an output that was cut."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from chat.agent.base import InstanceKey
from chat.core.context.result_files import READER
from chat.files.tool_outputs import read_whole
from thinkproject.kernel.aio import db
from tools_app.core.output_limits import OutputLimit, page_of
from tools_app.core.tool import Tool, tool

PAGE_LINES = 2_000
PAGE_BYTES = 48 * 1024


def output_reader(key: InstanceKey) -> Tool:
    """The tool of one conversation. It reads nothing before it is called."""
    return _OutputReader(key).read_output


@dataclass(frozen=True)
class _OutputReader:
    """Its tool is declared once: each turn has it, and a schema costs more than all else of a turn's assembly."""

    key: InstanceKey

    @tool(name=READER, title="Read an output", output_limit=OutputLimit(), read_only=True)
    async def read_output(
        self,
        id: Annotated[str, Field(description="The id that stands below the output that was cut.")],  # noqa: A002 - for models
        offset: Annotated[int, Field(ge=1, description="The first line to read, counted from 1.")] = 1,
        limit: Annotated[int, Field(ge=1, le=PAGE_LINES, description="Lines to read at most.")] = 500,
    ) -> str:
        """Read on in a tool's output that was cut. Lines of more than 2000 characters come in pieces."""
        whole = await db(read_whole, id, owner_id=self.key.owner_id, instance_id=self.key.instance_id)
        page = page_of(whole, first_line=offset, max_lines=limit, max_bytes=PAGE_BYTES)
        last = page.first_line + page.text.count("\n")
        more = f"Read on with offset {page.next_line}." if page.next_line else "This is the end."
        return f"{page.text}\n[Lines {page.first_line} to {last} of {page.line_count}. {more}]"
