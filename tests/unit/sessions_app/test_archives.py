"""Archives of other products as conversations: branches, the chosen leaf, calls, reasoning, files, hidden nodes."""

import io
import json
import struct
import zipfile
from typing import Any

import pytest

from sessions_app.core.messages.messages import parse_message
from sessions_app.errors import ExportInvalid
from sessions_app.transfer.archives import splitting
from sessions_app.transfer.archives.container import Archive
from sessions_app.transfer.archives.lines import conversation_lines
from sessions_app.transfer.archives.reading import read_archive, read_conversation
from sessions_app.transfer.archives.shapes import Conversation, FileRef, LeftOut, Product, UnreadableItem
from sessions_app.transfer.archives.splitting import Flaw, elements
from tests import archives


def found_in(data: bytes) -> list[Conversation | UnreadableItem]:
    return list(read_archive(Archive(io.BytesIO(data), "export.json")))


def read_in(data: bytes) -> list[Conversation]:
    return [each for each in found_in(data) if isinstance(each, Conversation)]


def flaws_in(data: bytes) -> list[UnreadableItem]:
    return [each for each in found_in(data) if isinstance(each, UnreadableItem)]


def one(value: Any) -> Conversation:
    found = read_conversation(value, "place")
    assert isinstance(found, Conversation)
    return found


def shape(conversation: Conversation) -> dict[str, Any]:
    """Parents and kinds of parts by message id."""
    return {
        message.id: (
            message.parent_id,
            message.role,
            [part.name if isinstance(part, FileRef) else part.get("text", part["type"]) for part in message.parts],
        )
        for message in conversation.messages
    }


def test_chatgpt_keeps_both_answers_and_the_chosen_one() -> None:
    trip = one(archives.gpt_trip())
    assert shape(trip) == {
        "n2": (None, "user", ["beach.png", "Where is this?"]),
        "n3": ("n2", "assistant", ["data-hidden", "Graz."]),
        "n5": ("n2", "assistant", ["Perhaps Linz."]),
    }
    assert trip.leaf_id == "n5"
    assert trip.messages[1].metadata == {"model": "m1"}
    assert trip.messages[1].parts[0] == {"type": "data-hidden", "data": {"role": "system", "text": "Be brief."}}
    assert trip.left_out == {LeftOut.EMPTY: 2, LeftOut.HIDDEN: 1}
    assert trip.created_at is not None
    assert trip.created_at.timestamp() == 1767000000.5


def test_chatgpt_joins_the_nodes_of_an_answer_up_to_its_branches() -> None:
    tools = one(archives.gpt_tools())
    assert tools.is_archived
    assert [(message.id, message.parent_id) for message in tools.messages] == [
        ("q", None),
        ("t", "q"),
        ("o1", "t"),
        ("o2", "t"),
        ("u2", "o2"),
        ("f", "u2"),
    ]
    by_id = {message.id: message for message in tools.messages}
    assert [part["text"] for part in by_id["t"].parts if isinstance(part, dict)] == ["**Plan**\n\nAdd them.", "For 2 s"]
    for message_id, output, text in (("o1", "2", "It is 2."), ("o2", "drawn", "See the picture.")):
        call, *rest = by_id[message_id].parts
        assert isinstance(call, dict)
        assert (call["toolName"], call["input"], call["state"], call["output"]) == (
            "python",
            {"input": "print(1 + 1)"},
            "output-available",
            output,
        )
        assert rest[-1] == {"type": "text", "text": text}
    assert by_id["o2"].parts[1] == FileRef(name="file_00ab", key="file_00ab")
    assert by_id["f"].parts == [
        {"type": "data-imported", "data": {"content_type": "future_kind", "payload": {"deep": [1, 2]}}}
    ]
    assert tools.left_out[LeftOut.UNKNOWN] == 1


def test_a_call_stays_where_it_is_when_a_person_follows() -> None:
    code = {"content_type": "code", "language": "unknown", "text": '{"q": 1}'}
    nodes = [
        archives.gpt_node("q", None, ["c"], role="user", content="?"),
        archives.gpt_node("c", "q", ["u", "o"], role="assistant", content=code, recipient="web.run"),
        archives.gpt_node("u", "c", role="user", content="stop"),
        archives.gpt_node("o", "c", role="tool", name="web.run", content="late"),
    ]
    found = one(archives.gpt_conversation("x", nodes, "u"))
    assert shape(found) == {
        "q": (None, "user", ["?"]),
        "c": ("q", "assistant", ["dynamic-tool"]),
        "u": ("c", "user", ["stop"]),
        "o": ("c", "assistant", ["dynamic-tool"]),
    }


def test_an_archive_of_chatgpt_with_its_traps() -> None:
    data = archives.chatgpt_zip()
    assert [each.id for each in read_in(data)] == ["conv-trip", "conv-tools"]
    assert [(each.name, each.reason) for each in flaws_in(data)] == [("Nothing", "It has no messages.")]
    archive = Archive(io.BytesIO(data))
    for conversation in read_in(data):
        for ref in conversation.files:
            info = archive.find(ref.key)
            assert info is not None, ref
            assert archive.read(info, max_bytes=1000) == archives.PNG
            assert archive.read(info, max_bytes=10) is None


def test_an_archive_in_many_files_goes_in_their_order_and_says_where_it_is_cut() -> None:
    found = found_in(archives.chatgpt_parts_zip())
    assert [each.id if isinstance(each, Conversation) else each.name for each in found] == [
        *(f"conv-{place}" for place in range(5)),
        "conv-tools",
        "conversations-2.json, 2",
        *(f"conv-{place}" for place in range(5, 10)),
    ]
    assert [each.reason for each in found if isinstance(each, UnreadableItem)] == [
        "The file ends in the middle: what comes after this is missing."
    ]


def test_claude() -> None:
    linear, tree, empty = found_in(archives.claude_zip())
    assert isinstance(linear, Conversation)
    assert shape(linear) == {
        "m1": (None, "user", ["notes.txt", "map.png", "What is Linz?"]),
        "m2": (
            "m1",
            "assistant",
            ["A search is needed.", "dynamic-tool", "Linz is a city.", "data-imported"],
        ),
        "m3": ("m2", "user", ["Old shape"]),
    }
    assert linear.files[0].text == "My notes"
    call = linear.messages[1].parts[1]
    assert isinstance(call, dict)
    assert (call["toolCallId"], call["output"], call["input"]) == ("toolu_1", "A city.", {"query": "linz"})
    assert isinstance(tree, Conversation)
    assert tree.leaf_id == "b"
    assert {message.id: message.parent_id for message in tree.messages} == {"q": None, "a": "q", "b": "q", "c": "a"}
    assert empty == UnreadableItem(name="Empty", reason="It has no messages.")


def test_open_webui() -> None:
    record, linear, empty = found_in(archives.encoded(archives.open_webui_list()))
    assert isinstance(record, Conversation)
    assert record.product is Product.OPEN_WEBUI
    assert (record.is_pinned, record.leaf_id, record.title) == (True, "b4", "Weather")
    assert shape(record) == {
        "u1": (None, "user", ["data-hidden", "image", "a.txt", "Weather?"]),
        "b1": ("u1", "assistant", ["Look it up.", "dynamic-tool", "It rains."]),
        "u3": ("b1", "user", ["And tomorrow?"]),
        "b4": ("u3", "assistant", ["> Model not found"]),
        "b2": ("u1", "assistant", ["First\nthen", "Hello <b>you</b>", "dynamic-tool", "Done."]),
    }
    by_id = {message.id: message for message in record.messages}
    calls = [
        part for name in ("b1", "b2") for part in by_id[name].parts if isinstance(part, dict) and "toolName" in part
    ]
    assert [(call["toolName"], call["input"], call["output"]) for call in calls] == [
        ("weather", {"city": "Linz"}, "Rain"),
        ("clock", {"tz": 1}, "12:00"),
    ]
    assert isinstance(linear, Conversation)
    assert [message.role for message in linear.messages] == ["user", "assistant"]
    assert linear.created_at is not None
    assert linear.created_at.year == 2025
    assert empty == UnreadableItem(name="Empty", reason="It has no messages.")


def test_librechat_flat() -> None:
    (flat,) = read_in(archives.encoded(archives.librechat_flat()))
    assert flat.product is Product.LIBRECHAT
    assert shape(flat) == {
        "u1": (None, "user", ["data-hidden", "sum.png", "1?"]),
        "a1": ("u1", "assistant", ["Use the tool.", "dynamic-tool", "It is one."]),
        "u3": ("a1", "user", ["Sure?"]),
        "a2": ("u1", "assistant", ["One."]),
        "u9": (None, "user", ["An orphan"]),
    }
    assert flat.left_out[LeftOut.LINK] == 1


def test_librechat_recursive_in_a_zip_of_single_files() -> None:
    data = archives.zipped({"a.json": archives.librechat_tree(), "b.json": archives.librechat_flat()})
    deep, flat = read_in(data)
    assert [(message.id, message.parent_id) for message in deep.messages] == [
        ("r1", None),
        ("r2", "r1"),
        ("r3", "r2"),
        ("r4", "r2"),
    ]
    assert flat.id == "lc-1"


@pytest.mark.parametrize(
    "value",
    [
        archives.gpt_trip(),
        archives.gpt_tools(),
        *archives.claude_list()[:2],
        *archives.open_webui_list()[:2],
        archives.librechat_flat(),
        archives.librechat_tree(),
    ],
)
def test_every_message_can_be_stored(value: Any) -> None:
    conversation = one(value)
    lines = [
        json.loads(line) for line in conversation_lines(conversation, lambda ref: {"type": "text", "text": ref.name})
    ]
    assert lines[0]["source"] == conversation.product
    assert lines[-1] == {"kind": "end", "messages": len(conversation.messages)}
    known: set[str] = set()
    for line in lines[1:-1]:
        parse_message(line)
        assert line["parent"] is None or line["parent"] in known
        known.add(line["id"])
    assert lines[0]["leaf"] in known


@pytest.mark.parametrize(
    ("element", "reason"),
    [
        (b'{"mapping": NaN}', "Its JSON is damaged, or nested too deeply."),
        (b'{"mapping": {"a" 1}}', "Its JSON is damaged, or nested too deeply."),
        (b'{"a": "\xff"}', "Its JSON is damaged, or nested too deeply."),
        (b"[1]", "It is no conversation."),
        (b'{"some": "thing"}', "It is no conversation of a product that is known here."),
        (b"[" * 5000 + b"]" * 5000, "Its JSON is damaged, or nested too deeply."),
    ],
)
def test_one_that_is_broken_does_not_take_the_others_along(element: bytes, reason: str) -> None:
    good = archives.encoded(archives.gpt_trip())
    first, broken, last = found_in(b"\xef\xbb\xbf [" + good + b" , " + element + b"," + good + b"]")
    assert isinstance(first, Conversation)
    assert isinstance(last, Conversation)
    assert broken == UnreadableItem(name="export.json, 2", reason=reason)


def test_numbers_and_surrogates_that_strict_parsers_refuse_are_read() -> None:
    nodes = [archives.gpt_node("q", None, role="user", content="half \ud83d \x00", create_time=10**40)]
    (found,) = read_in(archives.encoded([archives.gpt_conversation("x", nodes, "q")]))
    assert found.messages[0].parts == [{"type": "text", "text": "half \ud83d \x00"}]
    assert found.messages[0].created_at is None


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_elements_do_not_depend_on_the_pieces(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [{"a": 'quote " and \\'}, {"b": ["]", "{", {"c": "\\\\"}]}, 5, "text ] }", [], {"d": {"e": "ü\ud83d"}}]
    monkeypatch.setattr(splitting, "PIECE_BYTES", piece)
    found = list(elements(io.BytesIO(b"\xef\xbb\xbf\n" + archives.encoded(values))))
    assert [json.loads(each) for each in found if isinstance(each, bytes)] == [
        value for value in values if isinstance(value, dict | list)
    ]


def test_an_element_that_is_too_large_is_passed_over() -> None:
    values = [{"a": "x" * 10_000}, {"b": 1}]
    flaw, element = elements(io.BytesIO(archives.encoded(values)), max_bytes=1_000)
    assert isinstance(flaw, Flaw)
    assert element == b'{"b": 1}'


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "It is empty."), (b"  ", "It is empty."), (b"hello", "It is not JSON."), (b"\xff\xfe[", "It is not JSON.")],
)
def test_what_is_no_archive_is_named(data: bytes, reason: str) -> None:
    assert [each.reason for each in flaws_in(data)] == [reason]


def test_a_zip_without_conversations_has_none() -> None:
    assert found_in(archives.zipped({"user.json": {"id": 1}, "broken.json": b"{"})) == []


@pytest.mark.parametrize("name", ["../conversations.json", "/etc/passwd", "a\\b.json", "C:x.json", "a/../b.json"])
def test_names_that_climb_are_refused(name: str) -> None:
    with pytest.raises(ExportInvalid, match="not allowed"):
        Archive(io.BytesIO(archives.zipped({name: []})))


def test_a_bomb_is_refused() -> None:
    with pytest.raises(ExportInvalid, match="bomb"):
        Archive(io.BytesIO(archives.zipped({"conversations.json": b"[" + b" " * 50_000_000 + b"]"})))


def test_links_and_encrypted_files_are_refused() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        info = zipfile.ZipInfo("conversations.json")
        info.external_attr = 0o120777 << 16
        made.writestr(info, "/etc/passwd")
    with pytest.raises(ExportInvalid, match="link"):
        Archive(target)
    data = bytearray(archives.zipped({"conversations.json": []}))
    at = data.index(b"PK\x01\x02")
    data[at + 8 : at + 10] = struct.pack("<H", 1)
    with pytest.raises(ExportInvalid, match="encrypted"):
        Archive(io.BytesIO(bytes(data)))


def test_damage_inside_a_zip_is_a_flaw() -> None:
    data = bytearray(archives.zipped({"conversations.json": [archives.gpt_trip()]}))
    data[60:90] = b"\xff" * 30
    assert [each.reason for each in flaws_in(bytes(data))] == [
        "The archive is damaged here: the rest of this file cannot be read."
    ]
