"""What is read within a call is noted there, also in its tasks and threads, and not outside of it."""

import asyncio
import threading

from tests.unit.tools_app.guard.noting import Notes
from tools_app.core.guard.reach import held_back, note_here, passed_on, reaching, written_as, written_here
from tools_app.core.guard.rules import SeenText
from tools_app.core.origins import Origin


def test_outside_of_a_call_nothing_is_noted_and_nothing_distrusted() -> None:
    note_here(Origin.WEB, "a")
    assert written_here() is None
    assert passed_on("s") == []


async def test_tasks_and_threads_of_a_call_belong_to_it() -> None:
    notes = Notes()

    async def inside() -> None:
        note_here(Origin.WEB, "task")
        await asyncio.to_thread(note_here, Origin.WEB, "thread")

    with reaching(notes):
        await asyncio.gather(inside(), asyncio.create_task(inside()))
    note_here(Origin.WEB, "later")
    assert {source for _, source in notes.found} == {"task", "thread"}


def test_a_thread_of_its_own_belongs_to_no_call() -> None:
    notes = Notes()
    with reaching(notes):
        thread = threading.Thread(target=note_here, args=(Origin.WEB, "elsewhere"))
        thread.start()
        thread.join()
    assert notes.found == []


def test_what_is_held_back_is_given_and_not_noted() -> None:
    notes = Notes(origin=Origin.WEB)
    with reaching(notes):
        with held_back() as texts:
            note_here(Origin.FILE, "/a")
            assert written_here() is Origin.WEB
        assert texts == [SeenText(Origin.FILE, "/a")]
    assert notes.found == []


def test_what_is_written_after_something_was_held_back_is_not_trusted() -> None:
    with reaching(Notes()), held_back():
        assert written_here() is None
        note_here(Origin.TOOL, "own")
        assert written_here() is None
        note_here(Origin.WEB, "a")
        assert written_here() is Origin.FILE


def test_a_block_may_say_whose_text_is_written() -> None:
    with written_as(Origin.FILE):
        assert written_here() is Origin.FILE
    assert written_here() is None


def test_a_text_is_passed_on_to_another_conversation_alone() -> None:
    notes = Notes(session_id="here")
    with reaching(notes):
        note_here(Origin.WEB, "a")
        assert passed_on("here") == []
        assert passed_on("there") == [SeenText(Origin.WEB, "a")]
