"""`useChat` of the AI SDK over plain HTTP: what is posted, followed and stopped at `/agents/{agent}/{name}/chat`."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.db import connections
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from redis.asyncio import Redis

from chat.access import api_tokens
from chat.access.auth import open_agent
from chat.http.usechat import list_read_markers, posts
from chat.http.usechat.playback import LOST
from chat.instances.rows import key_of
from chat.models import AgentInstance, ApiToken, Turn, TurnSeen
from chat.reads import snapshots
from chat.streams.logs.log import close_logs
from chat.streams.logs.redis_log import keys_of
from chat.turns.admission.stop import clear_instance
from sessions_app.core.messages.shapes import Part
from sessions_app.messages.services import put_assistant, queue_messages
from sessions_app.messages.stored_texts import StoredText
from tests.db.chat.conftest import make_turn, say
from tests.db.chat.use_chat import (
    TEXT,
    Json,
    Page,
    answer,
    asks,
    assistant,
    chunks_of,
    end,
    last_turn,
    lines_of,
    problem_of,
    transcript,
    turns,
    user,
    write,
)

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., AgentInstance]


async def test_a_turn_streams_its_chunks_until_it_is_stored(page: Page) -> None:
    response = await page.say("u1")
    assert response["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response["x-vercel-ai-ui-message-stream"] == "v1"
    assert response["X-Accel-Buffering"] == "no"
    assert response["Cache-Control"] == "no-cache, no-transform"
    turn = await last_turn()
    assert (turn.trigger, turn.input_ids) == ("submit-message", ["u1"])
    await answer(turn)
    await end(turn, parts=[TEXT])
    chunks = await chunks_of(response)
    assert chunks[0] == {"type": "start", "messageId": turn.assistant_id}
    assert [chunk["type"] for chunk in chunks[1:]] == [
        "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish",
    ]  # fmt: skip


async def test_the_id_of_the_page_is_no_address(page: Page) -> None:
    await page.post(asks([user("u1")]) | {"id": "../../other/chat"})
    assert [instance.name async for instance in AgentInstance.objects.all()] == ["talk"]
    turn = await last_turn()
    assert turn.body == {}  # neither does it become a custom field


async def test_custom_fields_are_the_body_of_the_turn(page: Page) -> None:
    await page.say("u1", tone="dry", messageId=None)
    assert (await last_turn()).body == {"tone": "dry"}


async def test_framing_waits_for_content(page: Page) -> None:
    response = await page.say("u1")
    turn = await last_turn()
    await write(turn, {"type": "start", "messageId": turn.assistant_id}, {"type": "start-step"})
    await end(turn, "cancelled", reason="stopped")
    assert await chunks_of(response) == [{"type": "abort"}]  # a `start` would leave an empty message on the page


async def test_an_error_in_the_stream_is_a_chunk_and_counts_as_seen(page: Page, alice: User) -> None:
    response = await page.say("u1")
    turn = await last_turn()
    await answer(turn, "Half an ans")
    await end(turn, "failed", text="The model is tired.")
    chunks = await chunks_of(response)
    assert chunks[-1] == {"type": "error", "errorText": "The model is tired."}
    assert await TurnSeen.objects.filter(turn=turn, user_id=alice.pk).aexists()


async def test_a_stopped_turn_ends_with_an_abort(page: Page) -> None:
    response = await page.say("u1")
    turn = await last_turn()
    await answer(turn, "Half")
    assert json.loads((await page.stop()).content) == {"stopped": 1}
    await end(turn, "cancelled", reason="stopped", parts=[TEXT])
    assert [chunk["type"] for chunk in await chunks_of(response)][-1] == "abort"
    assert json.loads((await page.stop()).content) == {"stopped": 0}


async def test_a_queued_turn_that_is_stopped_ends_too(page: Page) -> None:
    first, second = await page.say("u1"), await page.say("u2")
    assert json.loads((await page.stop()).content) == {"stopped": 2}
    assert await chunks_of(second) == await chunks_of(first) == [{"type": "abort"}]
    assert [message["id"] for message in await transcript()] == ["u1", "u2"]


async def test_a_connection_that_ends_stops_nothing(page: Page) -> None:
    response = await page.say("u1")
    reading = aiter(response.streaming_content)
    await anext(reading)
    await reading.aclose()
    turn = await last_turn()
    assert turn.fiber.cancel_requested_at is None
    assert turn.fiber.status == "pending"


async def test_a_log_that_is_gone_is_answered_from_the_row(page: Page) -> None:
    await page.say("u1")
    turn = await last_turn()
    await end(turn, parts=[{"type": "step-start"}, TEXT])
    chunks = await chunks_of(await page.say("u1"))
    assert chunks[0] == {"type": "start", "messageId": turn.assistant_id}
    assert [chunk.get("delta") for chunk in chunks if chunk["type"] == "text-delta"] == ["An answer."]


# Once


async def test_the_same_message_twice_is_one_turn(page: Page) -> None:
    first, second = await asyncio.gather(page.say("u1"), page.say("u1"))
    turn = await last_turn()
    assert len(await turns()) == 1
    await answer(turn)
    await end(turn, parts=[TEXT])
    assert await chunks_of(first) == await chunks_of(second)
    late = await page.say("u1")  # a retry that comes after the end gets what was said
    assert (await chunks_of(late))[0] == {"type": "start", "messageId": turn.assistant_id}
    assert len(await turns()) == 1


async def test_an_edit_and_a_new_answer_are_one_turn_while_they_run(page: Page, talk: AgentInstance) -> None:
    for body in (asks([user("q1", "other")], messageId="q1"), asks([user("q1", "text of q1")], "regenerate-message")):
        count = len(await turns())
        await asyncio.gather(page.post(body), page.post(body))
        await page.post(body)
        assert len(await turns()) == count + 1
        turn = await last_turn()
        await end(turn, parts=[TEXT])
    await page.post(body)  # the one that asks again after the end means it
    assert (await turns())[-1].id != turn.id


async def test_an_idempotency_key_is_one_turn_for_ever(page: Page, talk: AgentInstance) -> None:
    body = asks([user("q1", "text of q1")], "regenerate-message")
    await page.post(body, **{"Idempotency-Key": "k1"})
    turn = await last_turn()
    await end(turn, parts=[TEXT])
    await page.post(body, **{"Idempotency-Key": "k1"})
    assert (await last_turn()).id == turn.id
    status, code, _ = problem_of(await page.post(body, **{"Idempotency-Key": "k" * 129}))
    assert (status, code) == (422, "input_invalid")


# What is asked for


async def test_a_new_answer(page: Page, talk: AgentInstance) -> None:
    await page.post(asks([user("q1", "text of q1")], "regenerate-message", messageId="a1"))
    turn = await last_turn()
    assert (turn.trigger, turn.base_id) == ("regenerate-message", "q1")


@pytest.mark.parametrize("has_list", [True, False])
async def test_a_new_answer_by_id_from_a_list_that_was_not_cut(page: Page, talk: AgentInstance, has_list: bool) -> None:
    await sync_to_async(say)(talk, "q2", "a2")
    whole = [user("q1", "text of q1"), assistant("a1"), user("q2", "text of q2"), assistant("a2")] if has_list else []
    await page.post(asks(whole, "regenerate-message", messageId="a1"))
    assert (await last_turn()).base_id == "q1"


async def test_an_edit_is_a_turn_of_its_own(page: Page, talk: AgentInstance) -> None:
    await page.post(asks([user("q1", "other")], messageId="q1"))
    turn = await last_turn()
    assert (turn.trigger, turn.base_id, turn.base_is_explicit) == ("edit-message", None, True)


async def test_an_edited_message_is_known_by_its_first_id(page: Page, talk: AgentInstance) -> None:
    await page.post(asks([user("q1", "other")], messageId="q1"))
    edit = await last_turn()
    await end(edit, parts=[TEXT])
    await page.post(asks([user("q1", "other")], "regenerate-message", messageId=edit.assistant_id))
    turn = await last_turn()
    assert (turn.trigger, turn.base_id) == ("regenerate-message", edit.input_ids[0])


async def test_a_page_may_send_its_last_message_alone(page: Page, talk: AgentInstance) -> None:
    """As the guides of the SDK show it: `{id, message}`, and `{id, messageId, trigger}` for a new answer."""
    question = user("q2", "and this?")
    await page.post({"id": "a-chat-of-the-page", "message": question, "tone": "dry"})
    turn = await last_turn()
    assert (turn.trigger, turn.input_ids, turn.body) == ("submit-message", ["q2"], {"tone": "dry"})
    await end(turn, parts=[TEXT])
    await page.post({"message": question, "trigger": "submit-message"})
    assert (await last_turn()).id == turn.id  # once
    await page.post({"message": user("q2", "or this?"), "messageId": "q2"})
    edit = await last_turn()
    assert edit.trigger == "edit-message"
    await end(edit, parts=[TEXT])
    for named in ({"messageId": edit.assistant_id}, {}):
        response = await page.post({"id": "a-chat-of-the-page", "trigger": "regenerate-message", **named})
        assert response.status_code == 200, response.content
        again = await last_turn()
        assert (again.trigger, again.base_id) == ("regenerate-message", edit.input_ids[0])
        await end(again, parts=[TEXT])


@pytest.mark.parametrize(
    "body",
    [{}, {"message": "text"}, {"message": []}, {"message": {"id": "u1"}}, {"trigger": "regenerate-message"}],
    ids=str,
)
async def test_a_post_that_asks_nothing_is_refused_and_changes_nothing(page: Page, body: Json) -> None:
    assert problem_of(await page.post({"id": "a-chat-of-the-page", **body}))[0] == 422
    assert await turns() == []


async def test_a_message_beside_a_list_is_a_field_of_the_page(page: Page) -> None:
    await page.say("u1", message="fragile")
    assert (await last_turn()).body == {"message": "fragile"}


# Continuations


async def continued(page: Page, talk: AgentInstance) -> tuple[Turn, list[Json]]:
    """Ask to go on after `a1`; `a1` had a call that has got its result since the page saw it."""
    stored: Part = {"type": "tool-look", "toolCallId": "c1", "state": "output-available", "input": {}, "output": 7}
    seen: Part = {"type": "tool-look", "toolCallId": "c1", "state": "input-available", "input": {}}
    assert talk.session_id is not None
    await sync_to_async(put_assistant)(talk.session_id, assistant("a1", stored), after="q1", turn_id="")
    response = await page.post(asks([user("q1", "text of q1"), assistant("a1", seen)], messageId="a1"))
    turn = await last_turn()
    await answer(turn)
    await end(turn, parts=[TEXT])
    return turn, await chunks_of(response)


async def test_a_continuation_goes_on_in_the_message_of_the_page(page: Page, talk: AgentInstance) -> None:
    turn, chunks = await continued(page, talk)
    assert (turn.trigger, turn.base_id) == ("continue", "a1")
    assert chunks[0] == {"type": "start", "messageId": "a1"}
    assert chunks[1] == {"type": "tool-output-available", "toolCallId": "c1", "output": 7}
    assert chunks[2]["type"] == "start-step"
    assert [m["id"] for m in await transcript()] == ["q1", "a1", turn.assistant_id]


async def test_a_second_continuation_follows_the_first(page: Page, talk: AgentInstance) -> None:
    first, _ = await continued(page, talk)
    # On the page the first continuation is still a part of `a1`.
    await page.post(asks([user("q1", "text of q1"), assistant("a1", TEXT)]))
    assert (await last_turn()).base_id == first.assistant_id


async def test_a_page_that_comes_back_gets_what_a_continuation_goes_on_from(page: Page, talk: AgentInstance) -> None:
    await continued(page, talk)
    await page.post(asks([user("q1", "text of q1"), assistant("a1", TEXT)]))
    turn = await last_turn()
    response = await page.resume()
    await answer(turn, "More.")
    await end(turn, parts=[TEXT])
    chunks = await chunks_of(response)
    starts = [chunk["messageId"] for chunk in chunks if chunk["type"] == "start"]
    assert starts == [message["id"] for message in (await transcript())[1:]]
    assert not [chunk for chunk in chunks if chunk["type"] == "tool-input-available"]  # pages would run it again


# Coming back


async def test_nothing_to_resume(page: Page, talk: AgentInstance) -> None:
    assert (await page.resume()).status_code == 204
    assert (await page.resume("/agents/assistant/unborn/chat/x/stream")).status_code == 204
    assert await AgentInstance.objects.acount() == 1


async def test_a_page_comes_back_in_the_middle(page: Page) -> None:
    await page.say("u1")
    turn = await last_turn()
    await answer(turn)
    response = await page.resume()
    await end(turn, parts=[TEXT])
    assert (await chunks_of(response))[0] == {"type": "start", "messageId": turn.assistant_id}


async def test_all_that_is_under_way_is_followed_in_order(page: Page) -> None:
    await page.say("u1")
    await page.say("u2")
    response = await page.resume()
    for turn in await turns():
        await answer(turn)
        await end(turn, parts=[TEXT])
    starts = [chunk["messageId"] for chunk in await chunks_of(response) if chunk["type"] == "start"]
    assert starts == [turn.assistant_id for turn in await turns()]


async def test_what_ends_between_the_list_and_the_question_is_sent(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    await page.say("u1")
    turn = await last_turn()
    await answer(turn)
    assert (await page.http.get("/agents/assistant/talk/get-messages")).status_code == 200
    await end(turn, "cancelled", parts=[TEXT])
    starts = [chunk.get("messageId") for chunk in await chunks_of(await page.resume())]
    assert starts[0] == turn.assistant_id
    assert starts == [chunk.get("messageId") for chunk in await chunks_of(await page.resume())]  # React asks twice
    monkeypatch.setattr(list_read_markers, "AGAIN_SECONDS", 0)
    assert (await page.resume()).status_code == 200
    assert (await page.resume()).status_code == 204


async def test_what_is_in_the_list_is_not_sent_again(page: Page, bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/agents/assistant/talk/get-messages"
    await page.say("u1")
    first = await last_turn()
    await answer(first)
    await page.http.get(path)
    await end(first, parts=[TEXT])
    await page.http.get(path)  # another tab, which has the answer
    assert (await page.resume()).status_code == 204

    await page.say("u2")
    second = await last_turn()
    await answer(second)

    read = snapshots.window_of

    def end_meanwhile(session_id: str) -> list[StoredText]:
        async_to_sync(end)(second, parts=[TEXT])
        return read(session_id)

    monkeypatch.setattr(snapshots, "window_of", end_meanwhile)
    listed = json.loads((await page.http.get(path)).content)
    assert listed[-1]["id"] == second.assistant_id
    assert (await page.resume()).status_code == 204


async def test_turns_cleared_since_the_list_are_not_sent(page: Page) -> None:
    await page.say("u1")
    turn = await last_turn()
    await answer(turn)
    await page.http.get("/agents/assistant/talk/get-messages")
    instance = await AgentInstance.objects.aget()
    await sync_to_async(clear_instance)(key_of(instance))
    turn.input_ids = []
    await end(turn, "cancelled")
    assert (await page.resume()).status_code == 204


async def test_a_failure_that_no_client_saw_is_sent_once(page: Page) -> None:
    await page.say("u1")
    turn = await last_turn()
    await end(turn, "failed", text="The model is tired.")
    assert await chunks_of(await page.resume()) == [{"type": "error", "errorText": "The model is tired."}]
    assert (await page.resume()).status_code == 204


async def test_a_pause_is_filled_with_comments(page: Page, settings: Any) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.02
    response = await page.say("u1")
    reading = aiter(response.streaming_content)
    async with asyncio.timeout(10):
        assert [await anext(reading) for _ in range(3)] == [b": open\n\n", b": keep-alive\n\n", b": keep-alive\n\n"]
    await reading.aclose()


async def test_authority_that_ends_ends_the_stream(alice: User, settings: Any) -> None:
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 0.05
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    response = await Page(Authorization=f"Bearer {secret}").say("u1")
    await ApiToken.objects.aupdate(revoked_at=timezone.now())
    assert await lines_of(response) == []  # no end is sent: the turn still runs
    await close_logs()


# What it costs


@sync_to_async
def queries_of(alice: User, body: Json) -> int:
    with CaptureQueriesContext(connections["default"]) as captured:
        opened = open_agent(alice, "assistant", "talk")
        assert opened.instance is not None
        post = posts.read_post(json.dumps(body))
        posts.accept_post(key_of(opened.instance), opened.instance, post, actor_id=alice.pk)
    return len(captured)


async def test_a_post_costs_the_same_whatever_the_history(page: Page, alice: User, talk: AgentInstance) -> None:
    counts = []
    for length in (1, 40):
        earlier = [message for i in range(length) for message in (user(f"h{i}"), assistant(f"b{i}"))]
        counts.append(await queries_of(alice, asks([*earlier, user(f"new{length}")])))
        for i in range(10):
            await page.say(f"m{length}-{i}")
            await end(await last_turn(), parts=[TEXT])
        await end((await turns())[-11], parts=[TEXT])
    assert counts[0] == counts[1]


async def test_coming_back_costs_a_fixed_number_of_queries(alice: User, talk: AgentInstance) -> None:
    @sync_to_async
    def look() -> int:
        with CaptureQueriesContext(connections["default"]) as captured:
            opened = open_agent(alice, "assistant", "talk")
            posts.find_playbacks(opened.instance, alice.pk)
        return len(captured)

    assert await look() <= 4
    await sync_to_async(lambda: [make_turn(talk, status="pending") for _ in range(5)])()
    assert await look() <= 4
    assert talk.session_id is not None
    await sync_to_async(queue_messages)(talk.session_id, [user("waits")])
    assert await look() <= 4


async def test_a_failure_inside_the_stream_is_sent_and_ends_it(
    page: Page, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = await page.say("u1")
    turn = await last_turn()
    await write(turn, {"type": "start", "messageId": turn.assistant_id})
    async with Redis.from_url(redis_url) as redis:
        await redis.hdel(keys_of(turn.id)[1], "next")  # no program of ours leaves a log like this
    assert [json.loads(line) for line in await lines_of(response)] == [{"type": "error", "errorText": LOST}]
    assert [type(record.exc_info[1]) for record in caplog.records if record.exc_info] == [TypeError]


async def test_what_is_transient_is_sent_without_framing(page: Page) -> None:
    response = await page.say("u1")
    turn = await last_turn()
    status = {"type": "data-think-status", "data": {"kind": "retry"}, "transient": True}
    await write(turn, {"type": "start", "messageId": turn.assistant_id}, {"type": "start-step"}, status)
    await end(turn, "cancelled", reason="stopped")
    assert await chunks_of(response) == [status, {"type": "abort"}]
