"""Documents and photos that `read` shows: the same text and pictures as of attachments."""

import io
from typing import Any

import pytest
from PIL import Image

from tests.files_people_bring import DOCUMENTS, PICTURES, REFUSED, Brought
from tests.unit.tools_app.core.files.calling import call
from tools_app.core.files.workspace import Workspace
from tools_app.core.tool_output import ToolOutput
from tools_app.file_tools.reading import create_read_tool

SOURCE = {"recipe.html", "cyrillic.html", "notes.md", "customers.csv", "contacts.csv"}


async def read(workspace: Workspace, brought: Brought, **lines: int) -> Any:
    await workspace.write_file(f"/in/{brought.name}", brought.data)
    return await call(create_read_tool(workspace), path=f"/in/{brought.name}", **lines)


@pytest.mark.parametrize("brought", [b for b in DOCUMENTS if b.name not in SOURCE], ids=str)
async def test_read_gives_the_text_that_an_attachment_has(workspace: Workspace, brought: Brought) -> None:
    shown = await read(workspace, brought, offset=1)
    if brought.expected.startswith("("):
        assert (shown["unsupported"], f"({shown['note']})") == (True, brought.expected)
        return
    lines = [line.partition("\t")[2] for line in shown["content"].split("\n")]
    assert "\n".join(lines) == brought.expected
    assert shown["note"].startswith("This is the text of the file")


async def test_lines_of_a_document_are_asked_for_like_those_of_a_text(workspace: Workspace) -> None:
    talk = next(brought for brought in DOCUMENTS if brought.name == "talk.pptx")
    shown = await read(workspace, talk, offset=5, limit=1)
    assert (shown["content"], shown["fromLine"], shown["toLine"]) == ("5\t## Slide 2: Goals", 5, 5)
    assert "there is no line 500" in (await read(workspace, talk, offset=500))["error"]


async def test_a_page_of_the_workspace_is_source_and_a_pdf_is_shown(workspace: Workspace) -> None:
    page, letter = (next(b for b in DOCUMENTS if b.name == name) for name in ("recipe.html", "invoice.pdf"))
    assert "<script>track()</script>" in (await read(workspace, page))["content"]
    output = await read(workspace, letter)
    assert isinstance(output, ToolOutput)
    assert output.media[0].data == letter.data
    assert "with offset 1" in output.value["note"]


@pytest.mark.parametrize("brought", PICTURES, ids=str)
async def test_a_photo_is_shown_upright_and_small_enough(workspace: Workspace, brought: Brought) -> None:
    output = await read(workspace, brought)
    assert isinstance(output, ToolOutput)
    [media] = output.media
    with Image.open(io.BytesIO(media.data)) as picture:
        assert picture.size == brought.sides
        assert media.name.endswith({"PNG": ".png", "JPEG": ".jpg"}[str(picture.format)])


@pytest.mark.parametrize("brought", REFUSED, ids=str)
async def test_what_cannot_be_read_is_named(workspace: Workspace, brought: Brought) -> None:
    shown = await read(workspace, brought)
    assert (shown["unsupported"], shown["note"]) == (True, brought.expected)
