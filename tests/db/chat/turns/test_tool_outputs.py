"""Long outputs and files of tools: what the model is sent, what is stored, and what a crash leaves."""

import base64
from typing import Any, ClassVar

import pytest

from chat.files import attachments
from chat.files.tool_outputs import read_whole
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Attachment
from chat.operations.removal import delete_instance
from chat.think import (
    Media,
    OutputLimit,
    StepConfig,
    StepContext,
    Think,
    Tool,
    ToolContext,
    ToolOutput,
    TurnConfig,
    TurnContext,
    tool,
)
from fibers.context import current_fiber
from fibers.testing import die
from sessions_app.core.messages.shapes import OURS
from tests.db.chat.turns.agents.answering import Desk, on_record
from tests.db.chat.turns.agents.everyday import MODELS
from tests.pictures import PNG
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom, Room, status_of, text_of

PDF = b"%PDF-1.7 a plan"
RUNS: list[int] = []


@tool
def lines(count: int = 2_500) -> str:
    """Give numbered lines."""
    return "\n".join(f"line {number}" for number in range(1, count + 1))


@tool
def rows() -> dict[str, Any]:
    """Give an object with a long text."""
    return {"exit": 0, "out": "x" * 200_000}


@tool(output_limit=OutputLimit(lines=3))
async def short_limit() -> str:
    """Fail with a long text."""
    raise RuntimeError("a\nb\nc\nd\ne")


@tool
def draw() -> ToolOutput:
    """Draw."""
    return ToolOutput(value="drawn", media=[Media(data=PNG, name="../plot.png"), Media(data=PDF, name="plan.pdf")])


@tool
def odd_files() -> ToolOutput:
    """Return what cannot be kept, and what no model sees."""
    return ToolOutput(
        value={"n": 1},
        media=[Media(data=b"\x00\x01", name="x.bin"), Media(data=b"a,b", name="t.csv"), Media(data=b"", name="none")],
    )


@tool(needs_approval=True)
def draw_asked() -> ToolOutput:
    """Draw after a person has agreed."""
    return ToolOutput(value="drawn", media=[Media(data=PNG, name="plot.png")])


class Blind(ScriptedModel):
    """Sees nothing."""

    accepts_images = False
    accepts_documents = False


class Producer(Think):
    """Has all of them."""

    turn_tools: ClassVar[Any] = None
    step_tools: ClassVar[Any] = None
    own: ClassVar[list[Tool]] = []

    def get_model(self) -> Any:
        return MODELS["current"]

    def get_tools(self) -> list[Tool]:
        return [lines, rows, short_limit, draw, odd_files, draw_asked, *self.own]

    def before_turn(self, context: TurnContext) -> TurnConfig:
        return TurnConfig(active_tools=self.turn_tools)

    def before_step(self, context: StepContext) -> StepConfig:
        return StepConfig(active_tools=self.step_tools)


async def part(room: Room, index: int = 0) -> dict[str, Any]:
    calls = [dict(p) for m in await room.transcript() for p in m["parts"] if "toolCallId" in p]
    return calls[index]


async def details(room: Room, index: int = 0) -> dict[str, Any]:
    metadata: dict[str, Any] = (await part(room, index))["toolMetadata"][OURS]
    return metadata


async def files(room: Room) -> list[Attachment]:
    return await db(lambda: list(Attachment.objects.filter(owner_id=room.key.owner_id).order_by("name")))


def offered(room: Room) -> list[bool]:
    """Whether each request so far offered the reader."""
    return [any(item["name"] == "read_output" for item in body["tools"]) for body in room.model.requests]


def sent(room: Room, role: str) -> list[Any]:
    return [message["content"] for message in room.model.requests[-1]["messages"] if message["role"] == role]


async def test_a_long_output_is_cut_for_model_and_message_and_kept_whole(make_room: MakeRoom) -> None:
    room = make_room("producer")
    turn = await room.say("call tool lines {}\nsay: done")
    stored = await part(room)
    whole = (await details(room))["whole"]
    assert stored["output"].startswith("line 1\nline 2\n")
    assert "line 1334\n... [501 more lines, 5001 characters truncated] ...\nline 1835\n" in stored["output"]
    assert stored["output"].rstrip("\n").endswith("line 2500")
    [row] = await files(room)
    assert whole == {
        "id": row.id,
        "url": attachments.url_of(row.id),
        "bytes": len(lines().encode()),
        "lines": 2_500,
        "next": 1_335,
    }
    assert (row.name, row.media_type, row.instance_id) == ("output.txt", "text/plain", turn.instance_id)
    [result] = sent(room, "tool")
    assert result == (
        f"{stored['output']}\n[The output was cut: the whole has 2500 lines, {whole['bytes']} bytes. "
        f'Read on from line 1335 with read_output, id "{row.id}".]'
    )
    assert await db(read_whole, row.id, owner_id=room.key.owner_id, instance_id=turn.instance_id) == lines()
    [call] = await db(lambda: list(ToolCallRecord.objects.filter(turn_id=turn.pk)))
    assert (call.output, call.details) == (stored["output"], {"whole": whole})


async def test_the_model_reads_on(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool lines {}\nsay: done")
    output_id = (await details(room))["whole"]["id"]
    await room.say(f'call tool read_output {{"id": "{output_id}", "offset": 2001, "limit": 2}}\nsay: done')
    read = await part(room, 1)
    assert read["output"] == "line 2001\nline 2002\n[Lines 2001 to 2002 of 2500. Read on with offset 2003.]"
    assert read["title"] == "Read an output"
    await room.say(f'call tool read_output {{"id": "{output_id}", "offset": 2500}}\nsay: done')
    assert (await part(room, 2))["output"] == "line 2500\n[Lines 2500 to 2500 of 2500. This is the end.]"


async def test_the_reader_is_offered_once_something_was_cut(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say('call tool lines {"count": 3}\nsay: done')
    assert offered(room) == [False, False]
    await room.say("call tool lines {}\nsay: done")
    assert offered(room)[2:] == [False, True]
    await room.say("say: later")
    assert offered(room)[4:] == [True]


async def test_a_reader_that_is_not_offered_cannot_be_called(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say('call tool read_output {"id": "x"}\nsay: done')
    assert (await part(room))["errorText"] == "Tool 'read_output' is not available in this step."


@pytest.mark.parametrize(
    ("given", "is_offered"),
    [
        ({"turn_tools": ["lines"]}, True),
        ({"step_tools": ["lines"]}, True),
        ({"turn_tools": ["*", "!read_output"]}, False),
        ({"step_tools": ["*", "!read_*"]}, False),
        ({"enabled_tools": ["*", "!read_output"]}, False),
    ],
)
async def test_the_reader_is_taken_away_by_name(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], is_offered: bool
) -> None:
    for name, value in given.items():
        monkeypatch.setattr(Producer, name, value)
    room = make_room("producer")
    await room.say("call tool lines {}\nsay: done")
    assert offered(room) == [False, is_offered]


async def test_a_tool_of_the_developers_takes_the_readers_name(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    @tool
    def read_output(path: str) -> str:
        """Read something else."""
        return f"own {path}"

    monkeypatch.setattr(Producer, "own", [read_output])
    room = make_room("producer")
    await room.say('call tool read_output {"path": "x"}\nsay: {result}')
    assert text_of((await room.transcript())[-1]) == "own x"


async def test_another_conversations_output_is_not_read(make_room: MakeRoom) -> None:
    room, other = make_room("producer", "one"), make_room("producer", "two")
    await room.say("call tool lines {}\nsay: done")
    output_id = (await details(room))["whole"]["id"]
    MODELS["current"] = other.model
    await other.say("call tool lines {}\nsay: done")
    await other.say(f'call tool read_output {{"id": "{output_id}"}}\nsay: done')
    assert (await part(other, 1))["errorText"] == f"There is no output '{output_id}' in this conversation."


async def test_an_object_is_cut_in_its_shape_and_read_by_lines(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool rows {}\nsay: done")
    stored = (await part(room))["output"]
    assert stored["exit"] == 0
    assert len(stored["out"]) < 51_200
    [result] = sent(room, "tool")
    assert "The output was cut: the whole has 102 lines, 200019 bytes. Read on with read_output" in result
    output_id = (await details(room))["whole"]["id"]
    await room.say(f'call tool read_output {{"id": "{output_id}", "limit": 2}}\nsay: done')
    assert (await part(room, 1))["output"].startswith("exit: 0\nout: xxxx")


async def test_a_tool_has_a_limit_of_its_own_also_for_errors(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool short_limit {}\nsay: done")
    stored = await part(room)
    assert stored["state"] == "output-error"
    assert stored["errorText"] == "a\nb\n... [3 more lines, 5 characters truncated] ...\ne"
    assert (await details(room))["whole"]["lines"] == 5


async def test_the_settings_limit_and_lift(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_TOOL_OUTPUT_LINES = 2
    room = make_room("producer")
    await room.say('call tool lines {"count": 3}\nsay: done')
    assert (await part(room))["output"] == "line 1\nline 2\n... [1 more line, 7 characters truncated]"
    settings.THINK_TOOL_OUTPUT_LINES = settings.THINK_TOOL_OUTPUT_BYTES = 0
    await room.say('call tool lines {"count": 9000}\nsay: done')
    assert (await part(room, 1))["output"] == lines(9_000)


async def test_an_output_that_cannot_be_kept_is_cut_and_says_so(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FILES_QUOTA_BYTES = 100
    room = make_room("producer")
    turn = await room.say("call tool lines {}\nsay: done")
    assert status_of(turn) == "completed"
    assert "id" not in (await details(room))["whole"]
    assert sent(room, "tool")[0].endswith("bytes, and was not kept.]")
    assert offered(room) == [False, False]


SHOWN = [
    {"type": "text", "text": "[Files that the tool draw returned for the call one:]"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(PNG).decode()}"}},
    {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjcgYSBwbGFu"}},
]


async def test_files_of_a_tool_are_stored_and_seen_in_the_same_turn_and_later(make_room: MakeRoom) -> None:
    room = make_room("producer")
    turn = await room.say("call tool draw {} id=one\nsay: {result}")
    plan, plot = await files(room)
    assert (await details(room))["attachments"] == [
        {"url": attachments.url_of(plot.id), "mediaType": "image/png", "filename": "plot.png"},
        {"url": attachments.url_of(plan.id), "mediaType": "application/pdf", "filename": "plan.pdf"},
    ]
    assert {row.instance_id for row in (plan, plot)} == {turn.instance_id}
    assert sent(room, "tool") == ["drawn"]
    assert sent(room, "user")[-1] == SHOWN
    assert text_of((await room.transcript())[-1]) == "drawn"
    await room.say("say: later")
    assert sent(room, "user")[-2] == SHOWN
    body = await db(lambda: ToolCallRecord.objects.get(call_id="one").output)
    assert body == "drawn"


async def test_a_model_that_cannot_see_is_told_so(make_room: MakeRoom) -> None:
    room = make_room("producer")
    room.model = MODELS["current"] = Blind()
    await room.say("call tool draw {}\nsay: done")
    told = "You cannot see its content; the user can.]"
    assert sent(room, "tool")[0].split("\n") == [
        "drawn",
        f'[The tool returned "plot.png" (image/png). {told}',
        f'[The tool returned "plan.pdf" (application/pdf). {told}',
    ]


async def test_files_that_are_refused_or_not_for_models_are_named(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool odd_files {}\nsay: done")
    refused, table, empty = (await details(room))["attachments"]
    assert refused == {
        "filename": "x.bin",
        "error": "x.bin is no text, picture or document of a known kind. Save it as PDF, text or CSV, or put it "
        "into the files of the conversation.",
    }
    assert table["mediaType"] == "text/csv"
    assert empty == {"filename": "none", "error": "The file is empty."}
    [result] = sent(room, "tool")
    assert '"output":{"n":1}' in result
    assert "which was not kept: The file is empty." in result
    assert "t.csv" in result


async def test_files_beyond_the_room_of_a_request_are_named(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_REQUEST_MEDIA_BYTES = len(PDF)
    room = make_room("producer")
    await room.say("call tool draw {} id=one\nsay: done")
    assert sent(room, "tool") == [
        'drawn\n[The tool returned "plot.png" (image/png). It is not sent again: this request has too many files.]'
    ]
    await room.say("say: later")
    assert "too many files" in sent(room, "tool")[0]
    assert [item["type"] for item in sent(room, "user")[-2]] == ["text", "file"]


async def test_a_call_that_was_approved_has_its_files(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool draw_asked {} id=one\nsay: {result}")
    await Desk(room).reply("one", is_approved=True, continues=True)
    [row] = await files(room)
    assert (await details(room))["attachments"][0]["url"] == attachments.url_of(row.id)
    assert sent(room, "user")[-1][1]["image_url"]["url"].startswith("data:image/png")


@pytest.fixture
def _fresh_runs() -> None:
    RUNS.clear()


@tool
async def produce(context: ToolContext) -> ToolOutput:
    """Produce a long output and a file."""
    RUNS.append(context.attempt)
    return ToolOutput(value=lines(), media=[Media(data=PNG, name="plot.png")])


@pytest.mark.usefixtures("_fresh_runs")
async def test_a_crash_after_the_files_were_stored_stores_nothing_twice(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def after(self: Think, outcome: Any) -> None:
        fiber = current_fiber()
        assert fiber is not None
        if fiber.attempt == 1:
            die(fiber)  # the files are stored, the result is not recorded

    monkeypatch.setattr(Producer, "own", [produce])
    monkeypatch.setattr(Producer, "after_tool_call", after)
    room = make_room("producer")
    before = await _objects()
    turn = await room.say("call tool produce {} id=one\nsay: done")
    assert (status_of(turn), turn.fiber.attempt, RUNS) == ("completed", 2, [1, 2])
    output, plot = await files(room)
    known = await details(room)
    assert (known["whole"]["id"], known["attachments"][0]["url"]) == (output.id, attachments.url_of(plot.id))
    assert await _objects() - before == {output.storage_name, plot.storage_name}


@pytest.mark.usefixtures("_fresh_runs")
async def test_a_recovered_turn_shows_the_model_files_of_its_earlier_attempt(
    make_room: MakeRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Producer, "own", [produce])
    room = make_room("producer")
    with on_record("call:one", dies=True):
        turn = await room.say("call tool produce {} id=one\nsay: done")
    assert (status_of(turn), turn.fiber.attempt, RUNS) == ("completed", 2, [1])
    assert offered(room)[-1]
    assert sent(room, "user")[-1][1]["image_url"]["url"].startswith("data:image/png")


async def _objects() -> set[str]:
    def stored() -> set[str]:
        try:
            names = object_storage().listdir(attachments.FOLDER)[1]
        except FileNotFoundError:  # nothing was ever stored
            names = []
        return {f"{attachments.FOLDER}/{name}" for name in names}

    return await db(stored)


async def test_the_files_go_with_the_conversation(make_room: MakeRoom) -> None:
    room = make_room("producer")
    await room.say("call tool lines {}\ncall tool draw {}\nsay: done")
    assert len(await files(room)) == 3
    instance = await db(lambda: AgentInstance.objects.get(name=room.key.name))
    await db(delete_instance, instance)
    assert await files(room) == []
