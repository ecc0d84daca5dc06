"""What a model is sent with a tool's result: files that it can see, lines about others, and where to read on."""

from typing import cast

import pytest

from chat.core.context.prompt import to_model_messages
from chat.core.context.result_files import has_cut_output
from chat.core.model.language_model import FileContent, ToolMessage
from sessions_app.core.messages.shapes import OURS, Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

PICTURE = FileContent(media_type="image/png", data=b"\x89PNG", filename="a.png")
TOO_MUCH = FileContent(media_type="image/png", data=b"", filename="a.png")
DAMAGED = FileContent(media_type="image/png", data=b"", filename="a.png", text="It cannot be opened.")
ENTRY: JSONObject = {"url": "/files/1", "mediaType": "image/png", "filename": "a.png"}
PLAN: JSONObject = {"url": "/files/2", "mediaType": "application/pdf", "filename": "b.pdf"}


def part(details: JSONValue, *, output: JSONValue = "drawn", **more: JSONValue) -> Part:
    made: JSONObject = {
        "type": "tool-draw",
        "toolCallId": "c",
        "toolName": "draw",
        "state": "output-available",
        "input": {},
        "output": output,
        "toolMetadata": {OURS: details},
        **more,
    }
    return cast("Part", made)


def answer(*parts: Part) -> Message:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


def sent(of: Part, loaded: FileContent | None = PICTURE, *, sees: bool = True, sends: bool = True) -> ToolMessage:
    messages = to_model_messages(
        [answer(of)],
        accepts_images=sees,
        load_file=lambda url: loaded if url == "/files/1" else None,
        sends_media=sends,
    )
    message = messages[-1]
    assert isinstance(message, ToolMessage)
    return message


def test_a_file_that_the_model_can_see_goes_with_the_result() -> None:
    message = sent(part({"attachments": [ENTRY]}))
    assert (message.output, message.files) == ("drawn", (PICTURE,))


@pytest.mark.parametrize(
    ("entry", "loaded", "more", "line"),
    [
        (ENTRY, PICTURE, {"sees": False}, '"a.png" (image/png). You cannot see its content; the user can.]'),
        (ENTRY, PICTURE, {"sends": False}, '"a.png" (image/png). It is shown to the user.]'),
        (ENTRY, None, {}, '"a.png" (image/png). It is no longer available.]'),
        (ENTRY, DAMAGED, {}, '"a.png" (image/png): It cannot be opened.]'),
        (ENTRY, TOO_MUCH, {}, '"a.png" (image/png). It is not sent again: this request has too many files.]'),
        (PLAN, None, {}, '"b.pdf" (application/pdf). You cannot see its content; the user can.]'),
        ({**ENTRY, "mediaType": "text/csv"}, None, {}, '"a.png" (text/csv). It is shown to the user.]'),
        ({"filename": "x", "error": "Too large."}, None, {}, '"x", which was not kept: Too large.]'),
    ],
)
def test_any_other_file_is_named(
    entry: JSONObject, loaded: FileContent | None, more: dict[str, bool], line: str
) -> None:
    message = sent(part({"attachments": [entry]}), loaded, **more)
    assert (message.output, message.files) == (f"drawn\n[The tool returned {line}", ())


def test_lines_about_an_object_stand_beside_it() -> None:
    assert sent(part({"attachments": [ENTRY]}, output={"n": 1}), None).output == {
        "output": {"n": 1},
        "notes": ['[The tool returned "a.png" (image/png). It is no longer available.]'],
    }
    assert sent(part({"attachments": [ENTRY]}, output=None), None).output == (
        '[The tool returned "a.png" (image/png). It is no longer available.]'
    )


def test_a_result_that_was_let_go_has_no_files() -> None:
    message = sent(part({"attachments": [ENTRY]}, pruned=True))
    assert (message.output, message.files) == ("drawn", ())


@pytest.mark.parametrize(
    ("whole", "note"),
    [
        (
            {"id": "att_1", "bytes": 9, "lines": 3, "next": 2},
            '[The output was cut: the whole has 3 lines, 9 bytes. Read on from line 2 with read_output, id "att_1".]',
        ),
        (
            {"id": "att_1", "bytes": 9, "lines": 3},
            '[The output was cut: the whole has 3 lines, 9 bytes. Read on with read_output, id "att_1".]',
        ),
        ({"bytes": 9, "lines": 3}, "[The output was cut: the whole has 3 lines, 9 bytes, and was not kept.]"),
    ],
)
def test_an_output_that_was_cut_says_how_to_read_on(whole: JSONObject, note: str) -> None:
    cut = part({"whole": whole})
    assert sent(cut).output == f"drawn\n{note}"
    assert has_cut_output([answer(cut)]) is ("id" in whole)


@pytest.mark.parametrize(
    "details", [None, 3, [], {}, {"attachments": 3, "whole": 3}, {"attachments": [3], "whole": []}]
)
def test_details_of_another_form_say_nothing(details: JSONValue) -> None:
    odd = part(details)
    assert (sent(odd).output, sent(odd).files) == ("drawn", ())
    assert not has_cut_output([answer(odd)])
