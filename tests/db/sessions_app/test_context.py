"""The context of a session without any agent: blocks, prompts, entries, skills, history (rows A4.1 to A4.17)."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage
from django.db import connection

from sessions_app.context import history, store
from sessions_app.context.folder_provider import SkillFolder
from sessions_app.context.history import ContextActor, ContextOwner
from sessions_app.context.provider_storage import StorageSkills
from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import stored_contents
from sessions_app.core.context.context_blocks import Entry, StoredSearch, StoredSkills, StoredText, appended
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.errors import (
    BlockExists,
    BlockNotFound,
    BlockNotWritable,
    BlockTooLarge,
    ContextInvalid,
    EntryNotFound,
    SessionNotFound,
)
from sessions_app.messages.services import clear_session, freeze_prompt
from sessions_app.models import ContextBlock, ContextChange, Session
from sessions_app.testing import make_session

pytestmark = pytest.mark.django_db(transaction=True)

PERSON = ContextActor(via="api")


class Shelf:
    """A provider of a developer's own: sync and async methods mixed."""

    def __init__(self, content: str | None = None) -> None:
        self.content = content
        self.calls: list[Any] = []

    async def init(self, label: str) -> None:
        self.calls.append(("init", label))

    def get(self) -> str | None:
        self.calls.append("get")
        return self.content


class Notebook(Shelf):
    async def set(self, content: str) -> None:
        self.content = content


class Library(Shelf):
    def load(self, key: str) -> str | None:
        return {"tea": "How to brew tea."}.get(key)


class Index(Shelf):
    def __init__(self) -> None:
        super().__init__("facts")
        self.entries: dict[str, str] = {}

    async def search(self, query: str) -> list[tuple[str, str]]:
        return [(key, content) for key, content in self.entries.items() if query in content]

    def set(self, key: str, content: str, description: str) -> None:
        self.entries[key] = f"{content} ({description})"


def context(session: Session | None = None, setup: ContextSetup | None = None) -> SessionContext:
    return SessionContext((session or make_session()).pk, setup or ContextSetup().with_context("memory"))


@async_to_sync
async def run(awaitable: Any) -> Any:
    return await awaitable


@pytest.fixture
def ours(alice: User) -> Callable[..., Session]:
    return lambda *lines, **options: make_session(*lines, owner_id=alice.pk, **options)


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_blocks_and_prompt_come_with_their_first_use() -> None:
    shelf = Shelf("text")
    made = context(setup=ContextSetup().with_context("shelf", provider=shelf))
    assert shelf.calls == []
    assert run(made.block("shelf")).content == "text"
    run(made.blocks())
    assert shelf.calls == [("init", "shelf"), "get", "get"]


def test_a_provider_that_gives_nothing_is_an_empty_block() -> None:
    made = context(setup=ContextSetup().with_context("shelf", provider=Shelf(None)))
    assert run(made.block("shelf")).content == ""
    assert run(made.render()) == ""


def test_a_writable_provider_is_written_and_the_write_is_noted() -> None:
    book = Notebook("one")
    made = context(setup=ContextSetup().with_context("book", provider=book))
    assert run(made.append("book", "two")).content == book.content == "one\ntwo"
    [change] = history.list_changes(ContextOwner(session_id=made.session_id))
    assert (change.subject, change.action, change.before, change.after) == ("block:book", "append", "one", "one\ntwo")


def test_a_block_without_a_provider_is_a_row_of_the_session() -> None:
    made = context()
    assert run(made.block("memory")).content == ""
    assert not ContextBlock.objects.exists()  # nothing was written yet
    run(made.replace("memory", "Likes tea."))
    assert run(made.block("memory")).content == "Likes tea."
    assert ContextBlock.objects.get().session_id == made.session_id


def test_two_sessions_never_share_a_block() -> None:
    one, other = context(), context()
    run(one.replace("memory", "of one"))
    assert run(other.block("memory")).content == ""


def test_a_block_of_the_user_is_the_same_in_all_sessions(ours: Callable[..., Session], bob: User) -> None:
    setup = ContextSetup().with_memory()
    one, other = context(ours(), setup), context(ours(), setup)
    his = context(make_session(owner_id=bob.pk), setup)
    run(one.append("memory", "Likes tea."))
    assert run(other.block("memory")).content == "Likes tea."
    assert run(other.block("memory")).of == "user"
    assert run(his.block("memory")).content == ""


def test_a_session_of_nobodys_keeps_the_memory_itself() -> None:
    made = context(setup=ContextSetup().with_memory())
    run(made.append("memory", "Likes tea."))
    assert (run(made.block("memory")).content, run(made.block("memory")).of) == ("Likes tea.", "session")


def test_read_only_full_keyed_and_unknown_blocks_refuse() -> None:
    setup = (
        ContextSetup()
        .with_context("soul", provider="You are kind.")
        .with_context("small", max_tokens=10)
        .with_context("skills", provider=StoredSkills())
    )
    made = context(setup=setup)
    for call, error in [
        (made.replace("soul", "x"), BlockNotWritable),
        (made.append("small", "x" * 41), BlockTooLarge),
        (made.replace("skills", "x"), BlockNotWritable),
        (made.set_entry("small", "x"), BlockNotWritable),
        (made.replace("gone", "x"), BlockNotFound),
        (made.replace("small", "a\0b"), ContextInvalid),
        (made.search("small", "x"), BlockNotWritable),
        (made.load("small", "x"), BlockNotWritable),
    ]:
        with pytest.raises(error):
            run(call)
    assert not ContextBlock.objects.exists()
    assert not ContextChange.objects.exists()


def test_an_unknown_session_is_reported() -> None:
    with pytest.raises(SessionNotFound):
        run(SessionContext("ses_gone", ContextSetup()).blocks())


def test_blocks_come_and_go_at_run_time() -> None:
    made = context(setup=ContextSetup().with_context("soul", provider="Kind.").with_cached_prompt())
    kept = run(made.system_prompt())
    run(made.add("notes", description="Scratch", max_tokens=50))
    with pytest.raises(BlockExists, match="'notes'"):
        run(made.add("notes"))
    again = SessionContext(made.session_id, made.setup)  # another process
    run(again.replace("notes", "one"))
    assert [block.label for block in run(again.blocks())] == ["soul", "notes"]
    assert run(again.system_prompt()) == kept  # until a refresh
    assert "NOTES (Scratch) [" in run(again.refresh_system_prompt())
    assert run(again.remove("notes")) is True
    assert run(again.remove("notes")) is False
    assert run(again.remove("soul")) is True  # a declared one too
    assert run(made.blocks()) == []
    run(made.add("notes"))
    assert run(made.block("notes")).content == "one"  # what was written had stayed


def test_a_block_with_a_provider_lives_as_long_as_its_object() -> None:
    made = context()
    run(made.add("shelf", provider=Shelf("here")))
    assert run(made.block("shelf")).content == "here"
    assert run(SessionContext(made.session_id, made.setup).block("shelf")) is None
    assert run(made.remove("shelf"))
    assert run(made.block("shelf")) is None


# --- the prompt ------------------------------------------------------------------------------------------------------


def test_a_frozen_prompt_changes_with_a_refresh_alone() -> None:
    made = context(setup=ContextSetup().with_context("memory").with_cached_prompt())
    before = run(made.system_prompt())
    run(made.replace("memory", "Likes tea."))
    assert run(made.system_prompt()) == before
    assert run(SessionContext(made.session_id, made.setup).system_prompt()) == before  # A4.7: it is stored
    assert ContextBlock.objects.get().content == "Likes tea."
    refreshed = run(made.refresh_system_prompt())
    assert "Likes tea." in refreshed
    assert run(made.system_prompt()) == refreshed


def test_an_empty_kept_prompt_is_one() -> None:
    made = context(setup=ContextSetup().with_context("soul", provider="Kind.").with_cached_prompt())
    freeze_prompt(made.session_id, "")
    assert run(made.system_prompt()) == ""


def test_clearing_renders_anew_and_forgets_what_was_loaded() -> None:
    made = context(
        setup=ContextSetup().with_context("memory").with_context("lib", provider=Library()).with_cached_prompt()
    )
    run(made.system_prompt())
    run(made.append("memory", "Likes tea."))
    run(made.load("lib", "tea"))
    clear_session(made.session_id)
    assert "Likes tea." in run(made.system_prompt())
    assert run(made.state()).rows.loaded == frozenset()


def test_the_prompt_is_as_long_after_many_turns_as_after_one() -> None:
    made = context(setup=ContextSetup().with_context("memory").with_context("lib", provider=Library("- tea")))
    run(made.replace("memory", "Likes tea."))
    first = run(made.system_prompt())
    for _ in range(5):
        run(made.load("lib", "tea"))
        run(made.replace("memory", "Likes tea."))
        assert run(made.system_prompt()) == first


def test_what_a_person_changes_shows_at_once_everywhere(ours: Callable[..., Session]) -> None:
    setup = ContextSetup().with_memory().with_cached_prompt()
    one, other = context(ours(), setup), context(ours(), setup)
    run(one.append("memory", "Likes tea."))
    assert "Likes tea." in run(one.system_prompt())
    assert "Likes tea." in run(other.system_prompt())
    owner = run(one.state()).owner(setup.blocks["memory"], one.session_id)
    store.write_text(owner, "memory", lambda _: "Likes coffee.", by=PERSON)
    assert "Likes coffee." in run(other.system_prompt())
    store.forget(owner, "memory", by=PERSON)
    assert "Likes" not in run(one.system_prompt())


# --- entries, skills, search -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", ["session", "user"])
def test_skills_of_ours(ours: Callable[..., Session], of: Any) -> None:
    made = context(ours(), ContextSetup().with_context("skills", provider=StoredSkills(of)))
    key = run(made.set_entry("skills", "# Tea\nPour.", title="Brew tea", description="How to brew"))
    assert key == "brew-tea"
    assert run(made.block("skills")).content == "- brew-tea: How to brew"
    assert run(made.load("skills", "brew-tea")) == "# Tea\nPour."
    assert run(made.load("skills", "gone")) is None
    again = SessionContext(made.session_id, made.setup)  # after a restart
    assert run(again.state()).rows.loaded == {"skills:brew-tea"}
    assert run(again.unload("skills", "brew-tea")) is True
    assert run(again.unload("skills", "brew-tea")) is False


def test_what_is_loaded_is_kept_with_the_session() -> None:
    session = make_session("u: hi", "a: hello")
    made = context(session, ContextSetup().with_context("lib", provider=Library()))
    run(made.load("lib", "tea"))
    assert Session.objects.get(pk=session.pk).loaded_keys == ["lib:tea"]
    run(made.remove("lib"))
    assert Session.objects.get(pk=session.pk).loaded_keys == []


@pytest.mark.parametrize("of", ["session", "user"])
def test_entries_of_ours_are_counted_searched_and_replaced(ours: Callable[..., Session], of: Any) -> None:
    made = context(ours(), ContextSetup().with_context("facts", provider=StoredSearch(of)))
    assert run(made.block("facts")).content == ""
    run(made.set_entry("facts", "Bob prefers green tea.", title="Tea"))
    run(made.set_entry("facts", "The office is in Berlin.", title="Office"))
    assert run(made.block("facts")).content == "2 entries indexed."
    assert run(made.search("facts", "teas")) == "[tea]\nBob prefers green tea."
    run(made.set_entry("facts", "Bob prefers coffee.", title="Tea"))
    assert run(made.search("facts", "green")) == "No results found."
    assert run(made.search("facts", "coffee")) == "[tea]\nBob prefers coffee."
    assert run(made.search("facts", '"')).startswith("No results found.")
    assert run(made.block("facts")).content == "2 entries indexed."


def test_a_search_of_another_user() -> None:
    index = Index()
    made = context(setup=ContextSetup().with_context("facts", provider=index))
    assert run(made.set_entry("facts", "Likes tea.", title="Tea", description="drinks")) == "tea"
    assert run(made.search("facts", "Likes")) == "[tea]\nLikes tea. (drinks)"
    assert run(made.search("facts", "coffee")) == "No results found."


def test_a_history_can_be_searched_as_a_block(ours: Callable[..., Session], bob: User) -> None:
    make_session("u: my secret tea", owner_id=bob.pk)
    ours("u: I like green tea", "a: Noted: green tea.")
    here = ours("u: what did I say about green tea?")
    made = context(here, ContextSetup().with_searchable_history("history"))
    found = run(made.search("history", "green tea"))
    assert sorted(found.split("\n\n---\n\n")) == ["[assistant] Noted: green tea.", "[user] I like green tea"]
    assert run(made.search("history", "zebra")) == "No results found."
    block = run(made.block("history"))
    assert (block.writable, block.is_searchable) == (False, True)


def test_history_of_one_scope(ours: Callable[..., Session]) -> None:
    ours("u: tea elsewhere", scope="there")
    ours("u: tea in here", scope="here")
    made = context(ours(scope="here"), ContextSetup().with_searchable_history(of="scope"))
    assert run(made.search("history", "tea")) == "[user] tea in here"


def test_skills_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea" / "SKILL.md").write_text("---\nname: tea\ndescription: How to brew\n---\nPour.")
    (tmp_path / "code.md").write_text("# Style\nShort lines.")
    (tmp_path / ".hidden.md").write_text("no")
    (tmp_path / "empty").mkdir()
    (tmp_path / "out.md").symlink_to(Path(__file__))
    folder = SkillFolder(tmp_path, seconds=0)
    assert folder.get() == "- code: Style\n- tea: How to brew"
    assert folder.load("tea") == "Pour."
    assert [folder.load(key) for key in ("gone", "../tea", "out", ".hidden")] == [None] * 4
    assert SkillFolder(tmp_path / "gone").get() is None
    assert SkillFolder(tmp_path, keys=["tea"]).get() == "- tea: How to brew"


def test_skills_in_a_storage() -> None:
    storage = InMemoryStorage()
    storage.save("skills/tea/SKILL.md", ContentFile(b"---\ndescription: How to brew\n---\nPour."))
    storage.save("skills/code.md", ContentFile(b"# Style"))
    storage.save("other.md", ContentFile(b"# Not a skill"))
    skills = StorageSkills(storage=storage)
    assert skills.get() == "- code: Style\n- tea: How to brew"
    assert (skills.load("tea"), skills.load("other"), skills.load("gone")) == ("Pour.", None, None)
    assert StorageSkills("skills", storage=storage, keys=["code"]).get() == "- code: Style"
    assert StorageSkills("nowhere", storage=storage).get() is None
    storage.delete("skills/tea/SKILL.md")
    assert skills.load("tea") is None


# --- rows and their history ------------------------------------------------------------------------------------------


def test_every_write_has_a_history_row_with_actor_and_way(alice: User) -> None:
    owner = ContextOwner(owner_id=alice.pk)
    store.write_text(owner, "memory", lambda _: "one", by=history.MODEL)
    store.write_text(owner, "memory", lambda held: held, by=history.MODEL)  # no change, no row
    store.write_text(owner, "memory", lambda _: "two", by=ContextActor(via="api", user_id=alice.pk))
    store.put_entry(owner, "facts", Entry(key="tea", content="green"))
    store.delete_entry(owner, "facts", "tea", by=ContextActor(via="admin", user_id=alice.pk))
    store.forget(owner, "memory", by=ContextActor(via="api", user_id=alice.pk))
    sent = [(c.subject, c.action, c.before, c.after, c.via, c.actor_id) for c in history.list_changes(owner)]
    assert sent[::-1] == [
        ("block:memory", "set", "", "one", "model", None),
        ("block:memory", "set", "one", "two", "api", alice.pk),
        ("entry:facts/tea", "set", "", "green", "code", None),
        ("entry:facts/tea", "delete", "green", "", "admin", alice.pk),
        ("block:memory", "delete", "two", "", "api", alice.pk),
    ]
    assert store.read_texts(owner) == {}


def test_what_is_deleted_can_leave_the_history_too(alice: User) -> None:
    owner = ContextOwner(owner_id=alice.pk)
    store.write_text(owner, "memory", lambda _: "private")
    store.put_entry(owner, "memory", Entry(key="tea", content="private"))
    store.write_text(owner, "memories", lambda _: "other")
    store.forget(owner, "memory", erases_history=True)
    sent = {(change.subject, change.before, change.after) for change in history.list_changes(owner)}
    assert sent == {("block:memory", "", ""), ("entry:memory/tea", "", ""), ("block:memories", "", "other")}


def test_the_limit_that_was_declared_holds_for_people_too(ours: Callable[..., Session]) -> None:
    made = context(ours(), ContextSetup().with_memory(max_tokens=10))
    run(made.append("memory", "tea"))
    owner = run(made.state()).owner(made.setup.blocks["memory"], made.session_id)
    with pytest.raises(BlockTooLarge):
        store.write_text(owner, "memory", lambda _: "x" * 41, by=PERSON)
    with pytest.raises(EntryNotFound):
        store.delete_entry(owner, "memory", "gone")
    with pytest.raises(BlockNotFound):
        store.forget(owner, "gone")


def test_reading_blocks_costs_a_handful_of_queries(
    ours: Callable[..., Session], django_assert_max_num_queries: Any
) -> None:
    setup = ContextSetup()
    for number in range(5):
        setup.with_context(f"text{number}").with_context(f"user{number}", provider=StoredText("user"))
        setup.with_context(f"skills{number}", provider=StoredSkills())
        setup.with_context(f"facts{number}", provider=StoredSearch())
    session = ours()
    state = run(context(session, setup).state())
    with django_assert_max_num_queries(3):
        assert len(stored_contents(state, list(setup.blocks.values()), session.pk)) == 20


@pytest.mark.parametrize("of", ["session", "user"])
def test_writers_of_one_text_lose_nothing(ours: Callable[..., Session], of: str) -> None:
    session = ours()
    owner = ContextOwner(owner_id=session.owner_id) if of == "user" else ContextOwner(session_id=session.pk)
    store.write_text(owner, "memory", lambda _: "begun")
    both_read = threading.Barrier(2)

    def add(word: str) -> None:
        def change(held: str) -> str:
            with suppress(threading.BrokenBarrierError):
                both_read.wait(1)  # the one that does not wait for the other has read the same as the other
            return appended(held, word)

        try:
            store.write_text(owner, "memory", change)
        finally:
            connection.close()

    threads = [threading.Thread(target=add, args=[word]) for word in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(store.read_texts(owner)["memory"].content.split()) == ["begun", "one", "two"]


def test_a_provider_that_is_a_function_or_a_namespace() -> None:
    setup = ContextSetup().with_context("now", provider=lambda: "noon")
    setup.with_context("soul", provider=SimpleNamespace(get=lambda: "Kind."))
    assert [block.content for block in run(context(setup=setup).blocks())] == ["noon", "Kind."]
