"""No line of a file that a user uploads is more than refused: every one is imported or is an `ExportInvalid`."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.context.context_blocks import declare
from sessions_app.errors import ExportInvalid
from sessions_app.models import Session
from sessions_app.transfer.export import BLOCK_FIELDS, COMPACTION_FIELDS, ENTRY_FIELDS, SESSION_FIELDS, SUMMARY_FIELDS
from sessions_app.transfer.import_session import ImportRules, import_session
from tests.budget import examples

pytestmark = pytest.mark.django_db

STAMP = "2026-01-01T00:00:00+00:00"
FIELDS = {
    "session": (*SESSION_FIELDS, "leaf"),
    "message": ("id", "role", "parts", "metadata", "parent", "queued", "pruned_calls", "created_at", "placed_at"),
    "compaction": COMPACTION_FIELDS,
    "summary": SUMMARY_FIELDS,
    "block": BLOCK_FIELDS,
    "entry": ENTRY_FIELDS,
    "end": ("messages",),
}
GOOD: dict[str, dict[str, Any]] = {
    "session": {"kind": "session", "format": "think-session", "version": 1, "leaf": None},
    "message": {
        "kind": "message",
        "id": "m1",
        "role": "user",
        "parts": [{"type": "text", "text": "hi"}],
        "parent": None,
        "created_at": STAMP,
    },
    "compaction": {
        "kind": "compaction",
        "first_id": "m1",
        "last_id": "m1",
        "summary": "s",
        "trigger": "manual",
        "created_at": STAMP,
    },
    "summary": {"kind": "summary", "text": "s", "written_at": STAMP},
    "block": {"kind": "block", "label": "memory", "content": "tea"},
    "entry": {"kind": "entry", "label": "memory", "key": "k", "content": "c"},
    "end": {"kind": "end", "messages": 1},
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *(None, True, 0, 5, -1, 2**31, 2**63, 2**70, 1.5, 1e308, "", "x", "a\x00b", "\ud800", "x" * 300),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T00:00:00Z", "2026-02-30T00:00:00Z"),
        *([], [5], {}, {"a": 1}, [[[]]], [{"type": "text"}], [{"type": "tool-x", "state": 5}], [{"type": "file"}]),
    ]
)


@st.composite
def changed_lines(draw: st.DrawFn) -> list[str]:
    """A good export with one or two fields of one or two lines made odd, or taken away."""
    lines = {kind: dict(line) for kind, line in GOOD.items()}
    for kind in draw(st.lists(st.sampled_from(list(FIELDS)), min_size=1, max_size=2)):
        for name in draw(st.lists(st.sampled_from(FIELDS[kind]), min_size=1, max_size=2)):
            if draw(st.integers(0, 9)) == 0:
                lines[kind].pop(name, None)
            else:
                lines[kind][name] = draw(ODD)
    return [json.dumps(line) for line in lines.values()]


@settings(max_examples=examples(150), derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=changed_lines(), is_persons=st.booleans())
@example(lines=[json.dumps(line) for line in GOOD.values()], is_persons=True)
def test_a_line_is_imported_or_refused(lines: list[str], is_persons: bool) -> None:
    policy = BlockPolicy({"memory": declare("memory")})
    rules = ImportRules(blocks=policy, max_messages=10, begin=lambda: None, admit=lambda *_counts: None)
    before = Session.objects.count()
    try:
        import_session(lines, rules=rules if is_persons else None)
    except ExportInvalid:
        assert Session.objects.count() == before


def test_the_good_export_of_these_tests_is_imported() -> None:
    assert import_session([json.dumps(line) for line in GOOD.values()]).message_count == 1
