"""Options and return values of `useAgentChat` that no other file of this folder needs."""

import json
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Request

from tests.acceptance.product import wait_for
from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.given import give, js
from tests.clients.room import Room
from tests.clients.tab import Json, Tab, text_of

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])
LONG = "stream 60 words at 60/s"
REQUEST = "cf_agent_use_chat_request"
pytestmark = pytest.mark.room(agent="crier")


def sent(tab: Tab, kind: str) -> list[Json]:
    """Frames of one type that the page sent."""
    tab.page.wait_for_timeout(0)
    frames = [json.loads(text) for direction, text in tab.frames if direction == ">"]
    return [frame for frame in frames if frame.get("type") == kind]


def echo(tab: Tab, text: str = "echo") -> Json:
    """Say something and give the body that the agent was asked with."""
    before = tab.page.evaluate("() => harness.chat.messages.length")
    tab.send(text)
    tab.wait(f"harness.chat.messages.length >= {before + 2} && harness.chat.status === 'ready'", what="the echo")
    found: Json = json.loads(text_of(tab.messages[-1]))
    return found


def returned(tab: Tab, expression: str) -> Any:
    return tab.page.evaluate(f"() => JSON.parse(JSON.stringify({expression} ?? null))")


# What is sent


@pytest.mark.smoke("object-sdk7")
@LINES
@pytest.mark.parametrize("how", ["object", "function", "async"])
def test_body_reaches_the_agent(room_of: MakeRoom, context: BrowserContext, line: str, how: str) -> None:
    value = "{tone: 'dry', n: 1}"
    body = {"object": value, "function": f"() => ({value})", "async": f"async () => ({value})"}[how]
    give(context, chat=f"{{body: {body}}}")
    tab = room_of(line=line, agent="crier").open("first")
    assert echo(tab) == {"tone": "dry", "n": 1}


@LINES
def test_prepared_request_reaches_the_agent(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    """What is prepared wins over the body; the ids and the trigger are sent."""
    give(
        context,
        chat="""{
          body: {tone: 'dry', from: 'body'},
          prepareSendMessagesRequest: ({messages, trigger, messageId}) =>
            ({api: '/nowhere', headers: {'x-own': '1'}, credentials: 'omit',
              body: {from: 'prepared', count: messages.length, why: trigger, edits: messageId ?? null}}),
        }""",
    )
    tab = room_of(line=line, agent="crier").open("first")
    first = echo(tab)
    assert (first["tone"], first["from"], first["count"], first["why"]) == ("dry", "prepared", 1, "submit-message")
    tab.do("harness.chat.regenerate()")
    tab.wait("harness.chat.messages.at(-1).parts.some(p => p.text?.includes('regenerate-message'))")
    assert json.loads(text_of(tab.messages[-1]))["from"] == "prepared"


@LINES
def test_ids_that_the_page_makes_are_stored(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(context, chat="{generateId: (() => { let n = 0; return () => `mine-${Date.now()}-${n++}`; })()}")
    room = room_of(line=line)
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    assert room.rest()[0]["id"].startswith("mine-")


# What is there at first


@LINES
def test_messages_that_the_page_gets_by_itself(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    room = room_of(line=line)
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    room.close(tab)
    token = room.product.token("alice")
    give(
        context,
        chat=f"""{{getInitialMessages: async ({{agent, name, url}}) => {{
          note('asked', {{agent, name, url}});
          const base = url.split('?')[0];
          return await (await fetch(`${{base}}/get-messages?token={token}`)).json();
        }}}}""",
    )
    late = room.open("late")
    assert [(event["agent"], event["name"]) for event in late.events("asked")] == [("assistant", room.name)]
    room.ask_and_rest(late, "say: again")
    assert len(room.rest()) == 4


def test_no_fetch_and_messages_that_the_page_had(room: Room, context: BrowserContext) -> None:
    """The socket's transcript wins over them."""
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    room.close(tab)
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    old = {"id": "old", "role": "user", "parts": [{"type": "text", "text": "old"}]}
    give(context, chat=js({"getInitialMessages": None, "messages": [old]}))
    late = room.open("late")
    late.wait("harness.chat.messages.length === 2", what="the transcript")
    assert not [url for url in asked if "get-messages" in url]
    assert late.seen[0]["messages"][0]["id"] == "old"
    room.rest()


@pytest.mark.parametrize(("credentials", "sends_cookies"), [("omit", False), ("include", True)])
def test_headers_and_credentials_of_the_first_fetch(
    room: Room, context: BrowserContext, credentials: str, *, sends_cookies: bool
) -> None:
    token = room.product.token("alice")
    context.add_cookies([{"name": "theme", "value": "dark", "url": room.product.url("/")}])
    asked: list[Request] = []
    context.on("request", lambda r: asked.append(r) if "get-messages" in r.url and r.method == "GET" else None)
    give(context, chat=js({"headers": {"Authorization": f"Bearer {token}"}, "credentials": credentials}))
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    room.rest()
    headers = asked[0].all_headers()
    assert headers["authorization"] == f"Bearer {token}"
    assert ("cookie" in headers) is sends_cookies
    assert not tab.errors


# Streams


@LINES
def test_page_that_resumes_nothing(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(context, chat=js({"resume": False}))
    room = room_of(line=line)
    tab = room.open("first")
    room.ask(tab, LONG)
    tab.wait_text(20)
    tab.reload()
    wait_for(lambda: len(room.stored()) == 2, seconds=20, what="the stored answer")
    room.rest()
    assert sent(tab, "cf_agent_stream_resume_request") == []


@pytest.mark.parametrize("option", ["throttle", "experimental_throttle"])
def test_throttle_shows_less_often_and_all_at_the_end(room: Room, context: BrowserContext, option: str) -> None:
    give(context, chat=js({option: 3_000}))
    tab = room.open("first")
    room.ask(tab, LONG)
    wait_for(lambda: len(room.stored()) == 2, seconds=20, what="the stored answer")
    tab.wait(f"harness.seen.at(-1).messages.at(-1).text.length === {len(room.answers()[0])}", what="the whole answer")
    partly = {moment["messages"][-1]["text"] for moment in tab.seen if len(moment["messages"]) == 2}
    room.close(tab)
    give(context, chat=js({"throttle": False}))
    every = room.open("every chunk")
    room.ask_and_rest(every, LONG)
    each = {moment["messages"][-1]["text"] for moment in every.seen if len(moment["messages"]) == 4}
    assert len(each) > 2 * len(partly)  # how many a page draws in a second is the machine's


@LINES
def test_data_parts_are_sent_and_stored(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(
        context,
        chat="""{
      body: {n: 1}, onData: (part) => note('data', {part}),
      dataPartSchemas: {place: {'~standard': {version: 1, vendor: 'test', validate: (value) =>
        (note('checked', {value}), {value})}}},
      messageMetadataSchema: {'~standard': {version: 1, vendor: 'test', validate: (value) =>
        (note('metadata', {value}), {value})}},
    }""",
    )
    room = room_of(line=line, agent="crier")
    tab = room.open("first")
    echo(tab)
    expected = {"type": "data-place", "id": "d1", "data": {"city": "Ghent"}}
    assert [event["part"] for event in tab.events("data")] == [expected]
    if line == "sdk7":  # the older SDK checks nothing in a stream
        assert tab.events("checked")[0]["value"] == {"city": "Ghent"}
    assert tab.events("metadata")[0]["value"] == {"mood": "calm"}
    assert expected in room.stored()[1]["parts"]


# Ends


@LINES
def test_ends_are_sent(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(
        context,
        chat="""{
          onFinish: ({message, isError}) => note('finish', {id: message.id, isError}),
          onError: (error) => note('failed', {text: error.message}),
        }""",
    )
    room = room_of(line=line)
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    question, answer = room.rest()
    assert tab.events("finish")[0]["id"] == answer["id"]
    [end] = tab.events("turn-end")
    assert (end["outcome"], end["messageIds"], end["replay"]) == ("completed", [question["id"]], False)
    assert end["requestId"]
    room.ask(tab, "error 400")
    tab.wait("harness.chat.status === 'error' && harness.events.filter(e => e.kind === 'turn-end').length === 2")
    assert [event["outcome"] for event in tab.events("turn-end")] == ["completed", "error"]
    assert tab.events("turn-end")[1]["error"] == tab.error == tab.events("failed")[0]["text"]
    tab.do("harness.chat.clearError()")
    tab.wait("harness.chat.error === undefined && harness.chat.status === 'ready'")
    room.ask_and_rest(tab, "say: fine again")


# What the hook returns


@pytest.mark.smoke("sdk7")
@LINES
def test_streaming_flags(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line)
    tab, observer = room.open_two()
    room.ask_and_rest(tab, LONG)
    room.rest()
    assert tab.statuses("isStreaming") == [False, True, False]
    assert tab.statuses("isServerStreaming") == [False]
    assert observer.statuses("isStreaming") == observer.statuses("isServerStreaming") == [False, True, False]
    for each in (tab, observer):
        assert each.statuses("isRecovering") == each.statuses("isToolContinuation") == [False]


@pytest.mark.smoke("addToolOutput-sdk7")
@LINES
@pytest.mark.parametrize("how", ["addToolOutput", "addToolResult", "addToolApprovalResponse"])
def test_a_continuation_is_distinguished_from_a_new_message(room_of: MakeRoom, line: str, how: str) -> None:
    room = room_of(line=line, agent="desk")
    tab = room.open("first")
    call = 'pay {"amount": 5}' if how == "addToolApprovalResponse" else "locate {}"
    room.ask(tab, f"call tool {call}\nstream 20 words at 60/s")
    tab.wait("harness.chat.status === 'ready' && harness.chat.messages.at(-1)?.parts.some(p => p.toolCallId)")
    [part] = [part for part in tab.messages[-1]["parts"] if "toolCallId" in part]
    if how == "addToolApprovalResponse":
        argument = {"id": part["approval"]["id"], "approved": True}
    else:
        argument = {"toolCallId": part["toolCallId"], "tool": "locate", "output": "here"}
    tab.page.evaluate("([how, argument]) => { harness.chat[how](argument); }", [how, argument])
    tab.wait("harness.chat.messages.length === 3 && harness.chat.messages.at(-1).parts.some(p => p.text)")
    room.rest()
    assert tab.statuses("isToolContinuation") == [False, True, False]
    assert [message["role"] for message in room.stored()] == ["user", "assistant", "assistant"]


@pytest.mark.parametrize("syncs", [True, False])
def test_messages_that_the_page_sets_change_nothing_on_the_server(
    room: Room, context: BrowserContext, *, syncs: bool
) -> None:
    give(context, chat=js({"syncMessagesToServer": syncs}))
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    stored = room.rest()
    tab.do("harness.chat.setMessages((messages) => messages.slice(0, 1))")
    tab.wait("harness.chat.messages.length === 1")
    assert len(sent(tab, "cf_agent_chat_messages")) == int(syncs)
    room.ask_and_rest(tab, "say: more")
    assert room.rest()[:2] == stored


@pytest.mark.smoke
def test_history_that_is_cleared(room: Room) -> None:
    tab, observer = room.open_two()
    room.ask_and_rest(tab, "say: hello")
    room.rest()
    tab.do("harness.chat.clearHistory()")
    for each in (tab, observer):
        each.wait("harness.chat.messages.length === 0")
    assert room.stored() == []


@LINES
def test_stream_that_is_resumed_by_hand(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    give(context, chat=js({"resume": False}))
    room = room_of(line=line)
    tab = room.open("first")
    tab.do("harness.chat.resumeStream().then(() => harness.events.push({kind: 'resumed', at: 0}))")
    tab.wait("harness.events.some(e => e.kind === 'resumed')", what="an answer that there is nothing")
    room.ask(tab, "stream 120 words at 60/s")
    tab.wait_text(20)
    tab.reload()
    tab.wait("harness.events.some(e => e.kind === 'ready')", what="ready")
    assert "streaming" not in tab.statuses()
    tab.do("harness.chat.resumeStream()")
    tab.wait("harness.chat.status === 'streaming'", what="the stream that is under way")
    [_, answer] = room.rest()
    assert text_of(answer) == room.answers()[0] != ""


def test_what_else_the_hook_returns(room: Room) -> None:
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    assert returned(tab, "[harness.chat.error, harness.chat.connectionError, harness.chat.status]") == [
        None,
        None,
        "ready",
    ]
    assert f"/agents/crier/{room.name}" in returned(tab, "harness.chat.id")


# The queue of AI SDK 7


def test_queue_of_the_page(room: Room, context: BrowserContext) -> None:
    give(context, chat=js({"experimental_queue": True}))
    tab = room.open("first")
    room.ask(tab, LONG)
    tab.wait_text(20)
    for text in ("say: second", "say: never"):
        room.ask(tab, text)
    tab.wait("harness.chat.experimental_queuedMessages.length === 2")
    tab.do("harness.chat.experimental_removeQueuedMessage(harness.chat.experimental_queuedMessages.at(-1).id)")
    tab.wait("harness.chat.messages.length === 4 && harness.chat.status === 'ready'")
    assert [text_of(message) for message in room.rest()][3] == "second"
    assert returned(tab, "harness.chat.experimental_queuedMessages") == []
    room.ask(tab, LONG)
    tab.wait("harness.chat.status === 'streaming'")
    room.ask(tab, "say: now")
    tab.wait("harness.chat.experimental_queuedMessages.length === 1")
    tab.do("harness.chat.experimental_sendQueuedMessageNow(harness.chat.experimental_queuedMessages[0].id)")
    tab.wait("harness.chat.messages.length >= 7 && harness.chat.status === 'ready'")
    wait_for(lambda: text_of(room.stored()[-1]) == "now", seconds=20, what="the answer to what was sent at once")


# Deprecated ways to answer calls


@LINES
def test_calls_that_need_a_confirmation_of_the_page(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    """The old pair of options: the page runs the one, waits for a person with the other, and sends by itself."""
    give(
        context,
        chat="""{
          experimental_automaticToolResolution: true, autoContinueAfterToolResult: false,
          toolsRequiringConfirmation: ['ask'], autoSendAfterAllConfirmationsResolved: true,
          tools: {
            roam: {description: 'Roam.', parameters: {type: 'object'}, execute: async () => {
              while (harness.chat.status !== 'ready') await new Promise((resolve) => setTimeout(resolve, 20));
              return 'roamed';
            }},
            ask: {description: 'Ask.', inputSchema: {type: 'object'}, execute: () => 'never'},
          },
        }""",
    )
    room = room_of(line=line, agent="desk")
    tab = room.open("first")
    room.ask(tab, "call tool roam {}\ncall tool ask {}\nparallel calls\nsay: Both: {results}.")
    tab.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.type === 'tool-ask')", what="the calls")
    asked = "harness.chat.messages.flatMap(m => m.parts).find(p => p.type === 'tool-ask')"
    tab.wait("harness.chat.messages.flatMap(m => m.parts).some(p => p.output === 'roamed')")
    tab.wait(f"{asked}.state === 'input-available' && harness.chat.status === 'ready'")
    assert len(room.stored()) == 2
    tab.do(f"harness.chat.addToolResult({{toolCallId: {asked}.toolCallId, tool: 'ask', output: 'yes'}})")
    tab.wait("harness.chat.messages.at(-1).parts.some(p => p.text?.startsWith('Both'))")
    said = text_of(tab.messages[-1])
    assert "yes" in said
    assert "never" not in said


@LINES
def test_messages_sent_by_themselves_once_calls_are_complete(
    room_of: MakeRoom, context: BrowserContext, line: str
) -> None:
    complete = "messages.at(-1).role === 'assistant' && messages.at(-1).parts.at(-1)?.state === 'output-available'"
    give(
        context,
        chat=f"{{autoContinueAfterToolResult: false, sendAutomaticallyWhen: ({{messages}}) => {complete}}}",
    )
    room = room_of(line=line, agent="desk")
    tab = room.open("first")
    room.ask(tab, "call tool locate {}\nsay: You are at {result}.")
    tab.wait("harness.chat.status === 'ready' && harness.chat.messages.at(-1)?.parts.some(p => p.toolCallId)")
    tab.do(
        "harness.chat.addToolOutput({toolCallId: harness.chat.messages.at(-1).parts.at(-1).toolCallId,"
        " tool: 'locate', output: 'here'})"
    )
    tab.wait("harness.chat.messages.at(-1).parts.some(p => p.text?.includes('here'))")
    assert len(sent(tab, REQUEST)) == 2


# What the package exports beside the hook


@LINES
def test_helpers_of_the_package(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="desk")
    tab = room.open("first")
    room.ask(tab, 'call tool pay {"amount": 5}\nsay: {result}')
    tab.wait("harness.chat.status === 'ready' && harness.chat.messages.at(-1)?.parts.some(p => p.approval)")
    part = "harness.chat.messages.flatMap(m => m.parts).find(p => p.approval)"
    look = f"(({{getToolPartState, getToolCallId, getToolInput, getToolOutput, getToolApproval}}, p) => [\
getToolPartState(p), getToolCallId(p), getToolInput(p), getToolOutput(p) ?? null, getToolApproval(p)\
])(harness.published, {part})"
    state, call_id, value, output, approval = returned(tab, look)
    assert (state, value, output) == ("waiting-approval", {"amount": 5}, None)
    assert call_id
    tab.do(f"harness.chat.addToolApprovalResponse({{id: '{approval['id']}', approved: true}})")
    tab.wait(f"harness.published.getToolPartState({part}) === 'complete'")
    assert returned(tab, look)[3] == "paid 5"
    tools = "{roam: {parameters: {type: 'object'}, execute() {}}, ask: {}}"
    assert returned(tab, f"harness.published.extractClientToolSchemas({tools})")[0]["name"] == "roam"
    assert returned(tab, f"harness.published.detectToolsRequiringConfirmation({tools})") == ["ask"]


def test_messages_outside_of_the_hook(room: Room) -> None:
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    stored = room.rest()
    found = tab.page.evaluate(
        """async ([host, name, token]) => {
          const {getAgentMessages} = harness.published;
          const headers = {Authorization: `Bearer ${token}`};
          const url = `${host}/agents/crier/${name}/get-messages`;
          const address = {host, agent: 'crier', name, credentials: 'omit', headers};
          return [await getAgentMessages(address), await getAgentMessages({url, headers})];
        }""",
        [room.product.url("/").rstrip("/"), room.name, room.product.token("alice")],
    )
    assert found == [stored, stored]


def test_a_refused_connection_is_reported_by_both_hooks(room: Room) -> None:
    tab = room.open("first", is_waiting=False, agent="unknown")
    tab.wait("harness.chat?.connectionError && harness.agent.connectionError", what="the refusal")
    assert returned(tab, "harness.chat.connectionError.code") == 4404


# The transport by itself


def test_options_of_the_transport(room_of: MakeRoom, context: BrowserContext, proxy: CuttingProxy) -> None:
    give(
        context,
        transport="""{
          cancelOnClientAbort: false,
          activeRequestIds: (globalThis.active = new Set()),
          prepareBody: ({messages, trigger}) => ({count: messages.length, why: trigger}),
          onRequestBuffered: (messageId) => note('buffered', {messageId}),
        }""",
    )
    room = room_of(agent="crier", entry="use-chat")
    tab = room.open("first", port=proxy.port, transport="socket")
    assert echo(tab) == {"count": 1, "why": "submit-message"}
    assert tab.page.evaluate("() => active.size") == 0
    assert tab.page.evaluate("() => harness.transport.cancelActiveServerTurn()") is False
    assert tab.page.evaluate("() => harness.transport.activeServerTurnId") is None
    assert tab.events("buffered") == []
    proxy.cut()
    tab.do("harness.agent.close()")
    tab.wait("harness.agent.readyState !== harness.agent.OPEN")
    tab.send("buffered")
    tab.wait("harness.events.some(e => e.kind === 'buffered')")
    tab.do("harness.agent.reconnect()")
    tab.wait("harness.chat.messages.length === 4 && harness.chat.status === 'ready'", what="the answer to it")
    assert json.loads(text_of(tab.messages[-1]))["count"] == 3
    assert [event["messageId"] for event in tab.events("buffered")] == [tab.messages[2]["id"]]


def test_transport_says_what_is_under_way(room_of: MakeRoom, context: BrowserContext) -> None:
    give(context, transport="{activeRequestIds: (globalThis.active = new Set())}")
    room = room_of(entry="use-chat")
    tab = room.open("first", transport="socket")
    room.ask(tab, "stream 200 words at 60/s")
    tab.wait_text(20)
    turn, requests = tab.page.evaluate("() => [harness.transport.activeServerTurnId, [...active]]")
    assert requests == [turn] == [sent(tab, REQUEST)[0]["id"]]
    tab.do("harness.stop()")
    tab.wait("harness.transport.activeServerTurnId === null", what="the turn's end")
    room.rest()


def test_transport_that_cancels_on_demand(room_of: MakeRoom, context: BrowserContext) -> None:
    give(context, transport=js({"cancelOnClientAbort": False}))
    room = room_of(entry="use-chat")
    tab = room.open("first", transport="socket")
    room.ask(tab, "stream 200 words at 60/s")
    tab.wait_text(20)
    assert tab.page.evaluate("() => harness.transport.cancelActiveServerTurn()") is True
    wait_for(lambda: len(room.stored()) == 2, seconds=20, what="the partial answer")
    assert len(text_of(room.stored()[1]).split()) < 200
