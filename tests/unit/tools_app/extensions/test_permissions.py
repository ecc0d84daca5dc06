"""Manifests and permissions: read strictly, compared, and said in words."""

from typing import Any

import pytest

from tools_app.core.extensions.manifest import parse_manifest, parse_permissions
from tools_app.core.extensions.permissions import has_host, in_words, is_within, only_reads
from tools_app.core.questions import MAX_SENTENCE_CHARS
from tools_app.errors import ExtensionInvalid
from tools_app.extensions.load_tools import question


def manifest_with(**fields: Any) -> Any:
    return parse_manifest({"name": "notes", "version": "1.0.0", **fields})


def test_a_manifest_permits_nothing_that_it_does_not_name() -> None:
    found = manifest_with()
    assert found.permissions.to_json() == {
        "network": [],
        "workspace": "none",
        "context": {"read": [], "write": "own"},
        "messages": "none",
        "session": {"sendMessage": False, "metadata": False},
    }
    assert not has_host(found.permissions, found)
    assert only_reads(found.permissions, found)


@pytest.mark.parametrize(
    ("given", "network"), [(False, []), (None, []), ([], []), (True, "all"), (["a.org"], ["a.org"])]
)
def test_network_is_hosts_or_a_switch(given: Any, network: Any) -> None:
    assert parse_permissions({"network": given}).to_json()["network"] == network


def test_a_manifest_reads_as_it_was_stored() -> None:
    found = manifest_with(
        permissions={
            "network": ["a.org"],
            "context": {"read": "all", "write": ["x"]},
            "session": {"sendMessage": True},
        },
        context=[{"label": "scratchpad", "description": "Notes", "maxTokens": 500}],
        hooks=["onChunk"],
    )
    assert parse_manifest(found.to_json()) == found
    assert list(found.blocks) == ["notes_scratchpad"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "!!!"},
        {"name": "x" * 41},
        {"name": "a/b"},
        {"version": ""},
        {"extra": 1},
        {"permissions": {"workspace": "write"}},
        {"permissions": {"network": "a.org"}},
        {"permissions": {"network": ["a b"]}},
        {"permissions": {"network": [f"h{n}.org" for n in range(51)]}},
        {"permissions": {"files": "read"}},
        {"permissions": {"context": {"read": "some"}}},
        {"context": [{"label": "x"}, {"label": "x"}]},
        {"context": [{"label": "x", "type": "searchable"}]},
        {"context": [{"label": ""}]},
        {"hooks": ["onEverything"]},
    ],
)
def test_what_is_not_known_is_refused(wrong: Any) -> None:
    with pytest.raises(ExtensionInvalid):
        manifest_with(**wrong)
    with pytest.raises(ExtensionInvalid):
        parse_manifest("no object")


WIDE = {
    "network": ["a.org", "b.org"],
    "workspace": "read-write",
    "context": {"read": ["x", "y"], "write": ["x"]},
    "messages": "read",
    "session": {"sendMessage": True, "metadata": True},
}


@pytest.mark.parametrize(
    "less", [{}, {"network": ["b.org"]}, {"workspace": "read"}, {"context": {"read": ["y"], "write": []}}]
)
def test_less_is_within_more(less: Any) -> None:
    limit = parse_permissions(
        {**WIDE, "context": {"read": ["x", "y"], "write": "own"}} if "context" not in less else WIDE
    )
    assert is_within(parse_permissions(less), limit)
    assert is_within(limit, limit)


@pytest.mark.parametrize(
    "more",
    [
        {"network": ["c.org"]},
        {"network": True},
        {"context": {"read": ["z"], "write": []}},
        {"context": {"read": "all", "write": []}},
        {"context": {"write": ["z"]}},
        {"context": {"write": "own"}},
    ],
)
def test_more_is_not_within(more: Any) -> None:
    asked = parse_permissions({"context": {"write": []}, **more})
    assert not is_within(asked, parse_permissions(WIDE))


@pytest.mark.parametrize(
    "more",
    [{"workspace": "read"}, {"messages": "read"}, {"session": {"sendMessage": True}}, {"session": {"metadata": True}}],
)
def test_nothing_has_nothing_within(more: Any) -> None:
    assert not is_within(parse_permissions(more), parse_permissions({}))


def test_a_person_reads_every_kind_of_permission_however_long_the_lists_are() -> None:
    hosts = [f"{'x' * 60}{number}.example.org" for number in range(50)]
    given = {
        "name": "n" * 40,
        "source": "",
        "network": hosts,
        "workspace_access": "read-write",
        "context": [{"label": f"block{n}"} for n in range(10)],
        "read_context": [f"label{n}" * 5 for n in range(50)],
        "messages": "read",
        "send_messages": True,
        "session_info": True,
        "hooks": ["beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk"],
    }
    asked = question(given)
    assert len(asked) <= MAX_SENTENCE_CHARS
    for words in (
        "Files: reads, changes and deletes.",
        "(+49)",
        "Conversation: reads and adds",
        "(+",
        "Turns: changes",
    ):
        assert words in asked
    assert asked.endswith("Turns: follows their steps and calls.")


def test_a_question_about_what_cannot_be_loaded_says_so() -> None:
    assert question({"name": "!!!", "source": "x"}).startswith("This extension cannot be loaded:")


def test_words_for_nothing_say_that_there_is_nothing() -> None:
    found = manifest_with()
    words = [str(each) for each in in_words(found.permissions, found)]
    assert words == ["Files: none.", "Network: none.", "Conversation: nothing of it."]
