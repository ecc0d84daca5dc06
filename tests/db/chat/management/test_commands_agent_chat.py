"""`agent_chat --inline` on a pipe, in this process, with the scripted model."""

import io
from collections.abc import Callable
from contextlib import ExitStack
from operator import attrgetter
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chat.agent.base import InstanceKey
from chat.agent.methods.turns import to_message
from chat.core.model.language_model import DIRECT_CALL
from chat.llm.registry import replaced_models
from chat.llm.scripted import ScriptedModel
from chat.management.terminal import Screen
from chat.models import AgentInstance, Turn
from chat.reads.snapshots import current_transcript, find_turn
from chat.think import Command, Think, Tool, tool
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.models import PermissionRule
from tools_app.question_tool import ask_user

pytestmark = pytest.mark.django_db(transaction=True)

Say = Callable[..., tuple[str, str]]


@tool(needs_approval=True, approval_text="Write to {to}?")
def letter(to: str) -> str:
    """Write a letter."""
    return f"wrote to {to}"


class LetterWriter(Think):
    """Has code over a tool that asks."""

    code_tool = True
    workspace_tools = False
    commands = (Command("greet", "say: Dear $ARGUMENTS,", "Begin a letter"),)

    def get_model(self) -> str:
        return "default"

    def get_tools(self) -> list[Tool]:
        return [letter, ask_user]


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch) -> Say:
    def run(lines: str, *words: str, **options: Any) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        with ExitStack() as stack:
            stack.enter_context(replaced_models(ScriptedModel()))
            call_command("agent_chat", *(words or ("assistant",)), inline=True, stdout=out, stderr=err, **options)
        return out.getvalue(), err.getvalue()

    return run


def transcript(user: User, name: str = "terminal", agent: str = "assistant") -> list[Message]:
    return current_transcript(InstanceKey(owner_id=user.pk, agent=agent, name=name))


def test_answers_alone_go_to_standard_output(alice: User, say: Say) -> None:
    out, err = say("say: One.\n\nsay: Two.\n")
    assert (out, err) == ("One.\nTwo.\n", "")
    assert [message["role"] for message in transcript(alice)] == ["user", "assistant"] * 2


def test_a_tool_call_is_one_line_beside_the_answer(alice: User, say: Say) -> None:
    out, err = say('call tool current_time {"time_zone": "Mars/Base"}\n')
    assert len(err.splitlines()) == 1
    assert err.startswith('⚙ current_time {"time_zone":"Mars/Base"} → There is no time zone')
    assert "⚙" not in out


def test_the_last_answer_is_taken_back_and_brought_back(alice: User, say: Say) -> None:
    said = 'call tool write {"path": "/f", "content": "x"}\n'
    _, err = say(f"{said}/undo files\n/redo\n/undo\n")
    assert err.splitlines()[1:] == [
        "Undone: 1 file.",
        "Redone: 1 file.",
        "Undone: 1 file and the messages.",
    ]
    assert transcript(alice) == []
    with pytest.raises(CommandError, match="nothing to undo"):
        say("/undo\n")


WRITES = 'call tool write {"path": "/.env", "content": "A=1"}\n'


def test_commands_of_the_class_and_a_title(alice: User, say: Say) -> None:
    out, err = say("/greet Ann\n/title Letters to Ann\n/help\n", "letter-writer")
    assert out == "Dear Ann,\n"
    assert "Of this agent: /greet Begin a letter." in err
    assert AgentInstance.objects.get(owner=alice, agent="letter-writer").title == "Letters to Ann"


class Sheller(Think):
    """Runs what people type behind a `!`."""

    user_shell = "bash"

    def get_model(self) -> str:
        return "default"


def test_a_script_is_run_and_no_model_is_asked(alice: User, say: Say) -> None:
    out, err = say("!echo 6 > /seven && cat /seven\n/help\n", "sheller")
    assert out.strip() == ""
    assert err.startswith('⚙ bash {"script":"echo 6 > /seven && cat /seven"} → ')
    assert "!command runs it, and no model is asked" in err
    [turn] = Turn.objects.all()
    assert (turn.fiber.status, turn.model_name) == ("completed", DIRECT_CALL)
    say("!echo 8\n", "letter-writer")  # a class without a shell takes it as a message
    assert transcript(alice, agent="letter-writer")[-1]["role"] == "assistant"


def test_a_question_is_answered_once_always_or_refused_with_a_sentence(alice: User, say: Say) -> None:
    """Each line answers the oldest question; the answer goes on at once, and a rule holds from then on."""
    _, err = say(f"{WRITES}/reject Use another name.\n{WRITES}/once\n{WRITES}/always\n{WRITES}")
    lines = err.splitlines()
    assert sum(line.startswith("? Write a file: {") and "/.env" in line for line in lines) == 3
    assert lines[1] == "Answer with /once, /always (allows edit /.env), /reject [why] or /reject-all [why]."
    assert sum(line.startswith("⚙ write") for line in lines) == 1, lines  # the fourth, by the rule
    said = dump(transcript(alice))
    assert "Use another name." in said
    assert [rule.name for rule in map(attrgetter("permission"), PermissionRule.objects.all())] == ["allow edit: /.env"]
    with pytest.raises(CommandError, match="Nothing is asked"):
        say("/once\n")


def test_all_questions_are_refused_at_once_with_one_sentence(alice: User, say: Say) -> None:
    both = "await Promise.allSettled(['Ann', 'Ben'].map(to => tools.letter({to})))"
    code = f"async () => ({both}).map(one => `${{one.reason}}`)"
    _, err = say(f"call tool execute {dump({'code': code})} id=one\n/reject-all Not today.\n", "letter-writer")
    assert "(1 more after this)" in err
    said = dump(transcript(alice, agent="letter-writer"))
    assert said.count('CallFailed: A person did not approve this call: Not today."') == 2, said
    assert "wrote to" not in said
    with pytest.raises(CommandError, match="Nothing is asked"):
        say("/once\n", "letter-writer")


def test_a_question_with_choices_is_answered_in_words(alice: User, say: Say) -> None:
    questions = [{"question": "Which?", "header": "W", "options": [{"label": "Red"}, {"label": "Blue"}]}]
    out, err = say(f"call tool ask_user {dump({'questions': questions})}\n/answer Blue\n", "letter-writer")
    assert "? Which? [Red | Blue]" in err
    assert "Answer with /answer first | second, or /reject [why]." in err
    assert "Blue" in out  # the model got it


def test_a_message_that_interrupts_ends_the_answer_that_waits(alice: User, say: Say) -> None:
    code = "async () => await tools.letter({to: 'Ann'})"
    out, _ = say(f"call tool execute {dump({'code': code})} id=one\n/interrupt say: Second.\n", "letter-writer")
    assert out.endswith("Second.\n")
    key = InstanceKey(owner_id=alice.pk, agent="letter-writer", name="terminal")
    turns = list(Turn.objects.order_by("position"))
    assert [turn.delivery for turn in turns] == ["queue", "interrupt"]
    found = [find_turn(key, request_id=turn.request_id) for turn in turns]
    assert [each.status for each in found if each] == ["aborted", "completed"]


def test_a_call_of_code_asks_in_the_middle_of_its_answer(alice: User, say: Say) -> None:
    """The turn is parked meanwhile; what was printed before is not printed again."""
    code = "async () => await tools.letter({to: 'Ann'})"
    lines = f"call tool execute {dump({'code': code})} id=one\n/once\n"
    _, err = say(lines, "letter-writer")
    asked, how, *after = err.splitlines()
    assert asked == "? Letter: Write to Ann?"
    assert how.startswith("Answer with /once")
    assert len([line for line in after if line.startswith("⚙ execute")]) == 1
    assert "wrote to Ann" in err


def test_a_message_says_what_it_does_while_another_answer_is_written(alice: User, say: Say) -> None:
    """A message that steers stands in the answer that was asked for elsewhere; one that queues gets its own."""
    key = InstanceKey(owner_id=alice.pk, agent="assistant", name="terminal")
    elsewhere = "call tool current_time {}\nsay: First."
    admit(key, TurnRequest(intake=Program(messages=[to_message(elsewhere)]), request_id="elsewhere"))
    say("/steer say: Second.\n/queue say: Third.\n")
    assert [turn.delivery for turn in Turn.objects.order_by("position")] == ["queue", "steer", "queue"]
    answers = [dump(message["parts"]) for message in transcript(alice) if message["role"] == "assistant"]
    assert len(answers) == 2
    assert "Second." in answers[0]
    assert "Third." in answers[1]


def test_a_failed_turn_is_an_error_of_the_command(alice: User, say: Say) -> None:
    with pytest.raises(CommandError, match="key"):
        say("error 401\nsay: never\n")
    assert not [m for m in transcript(alice) if m["role"] == "assistant" and m["parts"]]


def test_clear_and_quit(alice: User, say: Say) -> None:
    say("say: One.\n/clear\n/quit\nsay: Two.\n")
    assert transcript(alice) == []


def test_another_name_is_another_conversation(alice: User, say: Say) -> None:
    say("say: One.\n", "assistant", "--name", "other")
    assert transcript(alice) == []
    assert len(transcript(alice, "other")) == 2


def test_the_user_must_be_named_when_there_are_several(alice: User, bob: User, say: Say) -> None:
    with pytest.raises(CommandError, match="no single user"):
        say("say: One.\n")
    say("say: One.\n", "assistant", "--user", "bob")
    assert len(transcript(bob)) == 2
    with pytest.raises(CommandError, match="no active user 'carla'"):
        say("say: One.\n", "assistant", "--user", "carla")


def test_an_unknown_agent_is_answered_with_the_known_ones(alice: User, say: Say) -> None:
    with pytest.raises(CommandError, match=r"no agent 'asistant'. There are: .*\bassistant\b"):
        say("", "asistant")


def test_the_class_name_is_taken_too(alice: User, say: Say) -> None:
    assert say("say: One.\n", "Assistant")[0] == "One.\n"


def test_inline_needs_no_redis_and_leaves_other_peoples_fibers_alone(
    alice: User, bob: User, say: Say, settings: Any
) -> None:
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    other = Fiber.objects.create(name="chat.turn", owner_id=bob.pk, payload={})
    out, err = say("say: One.\n", "assistant", "--user", "alice")
    assert (out, err) == ("One.\n", "")
    other.refresh_from_db()
    assert other.status == "pending"


def on_screen(*chunks: JSONObject, is_terminal: bool = True) -> str:
    out = io.StringIO()
    screen = Screen(out=out, err=io.StringIO(), is_terminal=is_terminal)
    screen.on_start("req")
    for chunk in chunks:
        screen.on_event(dump(chunk))
    screen.on_done()
    return out.getvalue()


def test_a_model_cannot_command_the_terminal() -> None:
    hostile = "a\x1b]0;title\x07b\x9b2Jc\u202ed\ttab\r\nend\r"
    chunk = {"type": "text-delta", "id": "t", "delta": hostile}
    assert on_screen(chunk) == "a]0;titleb2Jcd\ttab\nend\n"
    assert hostile in on_screen(chunk, is_terminal=False)


def test_reasoning_is_dimmed_on_a_terminal_and_apart_on_a_pipe() -> None:
    thought = {"type": "reasoning-delta", "id": "r", "delta": "hm"}
    text = {"type": "text-delta", "id": "t", "delta": "yes"}
    assert on_screen(thought, text) == "\x1b[2mhm\x1b[0m\nyes\n"
    assert on_screen(thought, text, is_terminal=False) == "yes\n"
