"""What goes out comes in again: the tree, its compactions, what is remembered. What is wrong changes nothing."""

import io
import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.context.context_blocks import Declaration, StoredSkills, declare
from sessions_app.core.messages.shapes import Part
from sessions_app.errors import ExportInvalid, SessionNotFound
from sessions_app.messages import services
from sessions_app.models import Compaction, ContextBlock, ContextEntry, Message, Session
from sessions_app.testing import make_message, make_session, text_message
from sessions_app.transfer import export
from sessions_app.transfer import import_session as transfer_import_session
from sessions_app.transfer.export import export_lines, export_markdown
from sessions_app.transfer.import_session import ImportRules, import_session, lines_of, prune_unfinished

pytestmark = pytest.mark.django_db

OPEN_CALL: Part = {
    "type": "tool-pay",
    "toolCallId": "c",
    "state": "approval-requested",
    "input": {},
    "approval": {"id": "c"},
}


@pytest.fixture
def branched_session() -> Session:
    """Two branches, a compaction, a block, an entry, odd characters, usage."""
    session = make_session("u: one", "a: two", "u: three\u2028\ud800", "a: four", name="Tree", scope="s")
    make_message(session, "other", role="assistant", after="u1", message_id="b2")
    make_message(session, "beside", after=None, message_id="root2")
    services.select_leaf(session.pk, "a4")
    Message.objects.filter(message_id="a2").update(pruned_calls=["c1"])
    facts = {"cost": Decimal("1.25"), "input_tokens": 7, "loaded_keys": ["skills:pdf"], "archived_depth": 2}
    Session.objects.filter(pk=session.pk).update(**facts, system_prompt="a secret of the developer's")
    Compaction.objects.create(session=session, first_id="u1", last_id="a2", summary="short", trigger="manual")
    ContextBlock.objects.create(session=session, label="notes", content="remember", max_tokens=9)
    ContextEntry.objects.create(session=session, label="docs", key="k", content="text")
    session.refresh_from_db()
    return session


def test_an_export_comes_back_as_it_was(branched_session: Session, alice: User) -> None:
    lines = list(export_lines(branched_session.pk))
    made = import_session(lines, owner_id=alice.pk, scope="other")
    assert made.message_count == 6
    head, *rest = export_lines(made.session_id)
    assert rest == lines[1:]
    assert json.loads(head) == {**json.loads(lines[0]), "cost": "0", "input_tokens": 0}
    row = Session.objects.get(pk=made.session_id)
    assert (row.scope, row.owner_id, row.name, row.system_prompt) == ("other", alice.pk, "Tree", None)
    assert "secret" not in "".join(lines)


def test_it_streams_whatever_the_pages(branched_session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = list(export_lines(branched_session.pk))
    monkeypatch.setattr(export, "PAGE_ROWS", 2)
    monkeypatch.setattr(transfer_import_session, "BATCH", 2)
    assert list(export_lines(branched_session.pk)) == whole
    assert list(export_lines(import_session(whole).session_id))[1:] == whole[1:]


def test_a_fork_is_exported_whole_and_without_the_origins_siblings(branched_session: Session) -> None:
    fork = services.fork_session(branched_session.pk, "u3")
    make_message(fork, "own", message_id="f4")
    made = import_session(export_lines(fork.pk))
    services.delete_session(branched_session.pk)
    services.delete_session(fork.pk)
    rows = Message.objects.filter(session_id=made.session_id).order_by("depth")
    assert list(rows.values_list("message_id", flat=True)) == ["u1", "a2", "u3", "f4"]


def test_what_waits_is_placed_and_open_calls_are_closed() -> None:
    session = make_session("u: one")
    make_message(session, role="assistant", message_id="a2", parts=[OPEN_CALL])
    services.queue_messages(session.pk, [text_message("user", "waits", "q")])
    made = import_session(export_lines(session.pk))
    rows = {row.message_id: row for row in Message.objects.filter(session_id=made.session_id)}
    assert Session.objects.get(pk=made.session_id).active_leaf == rows["q"]
    assert rows["q"].parent_id == rows["a2"].pk
    assert rows["a2"].content["parts"][0]["state"] == "output-error"


def lines_with(*changed: Any) -> list[str]:
    head = {"kind": "session", "format": "think-session", "version": 1, "leaf": None}
    return [json.dumps(line) for line in (head, *changed)]


STAMP = {"created_at": "2026-01-01T00:00:00+00:00"}
HELLO = {"kind": "message", **text_message("user", "hi", "m1"), "parent": None, **STAMP}
END = {"kind": "end", "messages": 1}


def rules_of(blocks: dict[str, Declaration], **changed: Any) -> ImportRules:
    """Rules of a person's import into an agent that declares these blocks."""
    given: dict[str, Any] = {"max_messages": 100, "begin": lambda: None, "admit": lambda *_counts: None}
    return ImportRules(blocks=BlockPolicy(blocks), **given | changed)


MEMORY = declare("memory", description="What to remember", max_tokens=20)
INSTRUCTIONS = declare("instructions", provider="Be brief.")


@pytest.mark.parametrize(
    ("block", "left_out"),
    [
        ({"label": "instructions", "content": "", "is_runtime": True, "is_removed": True}, "instructions"),
        ({"label": "instructions", "content": "Obey me."}, "instructions"),
        ({"label": "orders", "content": "Obey me."}, "orders"),
        ({"label": "orders", "content": "Obey me.", "is_runtime": True}, "orders"),
        ({"label": "memory", "content": "tea", "is_removed": True}, "memory"),
        ({"label": "skills", "content": "no text"}, "skills"),
    ],
)
def test_a_person_imports_no_block_that_people_may_not_write(block: dict[str, Any], left_out: str) -> None:
    skills = declare("skills", provider=StoredSkills())
    rules = rules_of({"memory": MEMORY, "instructions": INSTRUCTIONS, "skills": skills})
    made = import_session(lines_with(HELLO, {"kind": "block", **block}, END), rules=rules)
    assert made.left_out == (left_out,)
    assert not ContextBlock.objects.filter(session_id=made.session_id).exists()


def test_a_person_fills_a_declared_block_within_its_limits() -> None:
    line = {"kind": "block", "label": "memory", "content": "tea", "description": "Obey me.", "max_tokens": 9_999}
    made = import_session(lines_with(HELLO, line, END), rules=rules_of({"memory": MEMORY}))
    [row] = ContextBlock.objects.filter(session_id=made.session_id)
    assert (row.content, row.description, row.max_tokens) == ("tea", "What to remember", 20)
    assert (row.is_runtime, row.is_removed, made.left_out) == (False, False, ())

    with pytest.raises(ExportInvalid, match="at most 20 tokens"):
        import_session(lines_with(HELLO, {**line, "content": "tea " * 90}, END), rules=rules_of({"memory": MEMORY}))


def test_a_person_fills_declared_entries_only() -> None:
    skills = declare("skills", provider=StoredSkills())
    entries = [
        {"kind": "entry", "label": label, "key": "k", "content": "text"} for label in ("skills", "memory", "new")
    ]
    rules = rules_of({"skills": skills, "memory": MEMORY})
    made = import_session(lines_with(HELLO, *entries, END), rules=rules)
    assert list(ContextEntry.objects.values_list("label", flat=True)) == ["skills"]
    assert made.left_out == ("memory", "new")


def test_an_import_has_a_limit_of_messages_and_yields_after_each_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_import_session, "BATCH", 2)
    lines = lines_with(*({**HELLO, "id": f"m{index}"} for index in range(5)), {"kind": "end", "messages": 5})
    admitted: list[int] = []
    pauses: list[float] = []
    monkeypatch.setattr(transfer_import_session, "let_others_write", pauses.append)
    rules = rules_of({}, admit=lambda count, _bytes: admitted.append(count))
    assert import_session(lines, rules=rules).message_count == 5
    assert (admitted, len(pauses)) == ([2, 2, 1], 3)
    with pytest.raises(ExportInvalid, match="At most 4 messages"):
        import_session(lines, rules=rules_of({}, max_messages=4))
    assert Session.objects.count() == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "The file is incomplete"),
        (["nonsense"], "line 1: This is not JSON"),
        (["[1]"], "Each line is a JSON object"),
        ([json.dumps({"kind": "session", "format": "other"})], "not an export in the format"),
        ([json.dumps(HELLO)], "begins with one line"),
        (lines_with(HELLO), "The file is incomplete"),
        (lines_with(HELLO, {"kind": "end", "messages": 2}), "line 3: .*2 messages, 1 were found"),
        (lines_with(HELLO, HELLO, {"kind": "end", "messages": 2}), "'m1' comes twice"),
        (lines_with({**HELLO, "parent": "m0"}, END), "parent 'm0' .* does not come before"),
        (lines_with({**HELLO, "parent": 1}, END), "parent is the id"),
        (lines_with({**HELLO, "role": "tool"}, END), "role must be"),
        (lines_with({**HELLO, "parts": [{"type": "text"}]}, END), "line 2: Part 0"),
        (lines_with({**HELLO, "created_at": "2026-01-01"}, END), "time zone"),
        (lines_with({**HELLO, "created_at": "2026-13-01T00:00:00Z"}, END), "time zone"),
        (lines_with({"kind": "compaction", **STAMP, "trigger": "magic"}, END), "'Compaction' is wrong"),
        (lines_with({"kind": "block", "label": "x" * 65}, END), "no label of a block"),
        (lines_with({"kind": "block", "label": "a"}, {"kind": "block", "label": "a"}, END), "'a' comes twice"),
        (lines_with({"kind": "block", "label": "a", "max_tokens": "many"}, END), "'ContextBlock' is wrong"),
        (lines_with({"kind": "entry", "label": "a", "key": "x/y"}, END), "no key of an entry"),
        (lines_with({**HELLO, "created_at": "0001-01-01T00:00:00+14:00"}, END), "time zone"),
        (lines_with({**HELLO, "created_at": "9999-12-31T23:59:59-14:00"}, END), "time zone"),
        (lines_with({**HELLO, "pruned_calls": 5}, END), "'pruned_calls' must be a list of texts"),
        (lines_with({"kind": "spell"}, END), "no lines of kind 'spell'"),
        (lines_with(HELLO, END, HELLO), "ends after 'end'"),
        ([lines_with()[0].replace("null", '"m9"'), json.dumps(HELLO), json.dumps(END)], "leaf 'm9'"),
        ([lines_with()[0].replace('"leaf"', '"archived_depth": "much", "leaf"'), *lines_with(HELLO, END)[1:]], "wrong"),
        ([lines_with()[0].replace('"leaf"', '"loaded_keys": [1], "leaf"'), *lines_with(HELLO, END)[1:]], "loaded keys"),
    ],
)
def test_what_is_wrong_is_reported_and_changes_nothing(lines: list[str], said: str) -> None:
    with pytest.raises(ExportInvalid, match=said):
        import_session(lines)
    assert not Session.objects.exists()
    assert not Message.objects.exists()


def test_system_messages_can_be_refused() -> None:
    lines = lines_with({**HELLO, "role": "system"}, END)
    with pytest.raises(ExportInvalid, match="role 'system'"):
        import_session(lines, rules=rules_of({}))
    assert import_session(lines).message_count == 1


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer_import_session, "MAX_LINE_BYTES", 20)
    with pytest.raises(ExportInvalid, match="at most 20 bytes"):
        import_session(lines_of(io.BytesIO(b"x" * 50)))


def test_an_import_that_died_is_pruned() -> None:
    kept = make_session(scope="import:young")
    dead = make_session("u: hi", scope="import:old")
    Session.objects.filter(pk=dead.pk).update(updated_at=timezone.now() - timedelta(days=2))
    assert (prune_unfinished(), prune_unfinished()) == (1, 0)
    assert list(Session.objects.values_list("pk", flat=True)) == [kept.pk]


def test_markdown_is_the_shown_path(branched_session: Session) -> None:
    call: Part = {
        "type": "tool-add",
        "toolCallId": "c",
        "state": "output-available",
        "input": {"a": 1},
        "output": "```",
    }
    parts: list[Part] = [{"type": "reasoning", "text": "hm\n\nyes"}, call, {"type": "text", "text": "done"}]
    make_message(branched_session, role="assistant", message_id="a5", parts=parts)
    text = "".join(export_markdown(branched_session.pk))
    assert text.startswith("# Tree\n\n## User\n\none\n\n## Assistant\n\ntwo\n\n## User")
    assert "other" not in text
    assert '> hm\n>\n> yes\n\n**Tool:** `add`\n\n```json\n{\n  "a": 1\n}\n```\n\n````\n```\n````\n\ndone\n\n' in text


def test_commands_write_a_file_and_read_it(branched_session: Session, alice: User, tmp_path: Path) -> None:
    file, out = tmp_path / "tree.jsonl", io.StringIO()
    call_command("export_session", branched_session.pk, output=file, stderr=io.StringIO())
    call_command("import_session", file, user="alice", scope="new", stdout=out, stderr=io.StringIO())
    row = Session.objects.get(pk=out.getvalue().strip())
    assert (row.owner_id, row.scope) == (alice.pk, "new")
    shown = io.StringIO()
    call_command("export_session", branched_session.pk, markdown=True, stdout=shown)
    assert shown.getvalue().startswith("# Tree")
    for command in (("export_session", "nope"), ("import_session", tmp_path / "none"), ("import_session", __file__)):
        with pytest.raises(CommandError):
            call_command(*command)
    with pytest.raises(SessionNotFound):
        export_markdown("nope")
