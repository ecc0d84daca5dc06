"""Options and return values of `useAgent` that no other file of this folder needs."""

import pytest
from playwright.sync_api import BrowserContext

from tests.acceptance.proxy import CuttingProxy
from tests.clients.conftest import MakeRoom
from tests.clients.given import give, js
from tests.clients.room import Room
from tests.clients.tab import Tab

LINES = pytest.mark.parametrize("line", ["sdk7", "sdk6"])
pytestmark = pytest.mark.room(agent="crier")


def count(tab: Tab, kind: str) -> int:
    return len(tab.events(kind))


@LINES
def test_async_query_is_asked_once_for_its_dependencies(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    room = room_of(line=line)
    token = room.product.token("alice")
    query = f"async () => {{ note('asked', {{}}); return {{token: '{token}'}}; }}"
    give(context, agent=f"{{query: {query}, queryDeps: ['alice'], cacheTtl: 60000}}")
    tab = room.open("first")
    room.ask_and_rest(tab, "say: hello")
    room.rest()
    assert count(tab, "asked") == 1
    assert f"token={token}" in tab.sockets[-1]


def test_async_query_is_asked_again_once_it_is_stale(room: Room, context: BrowserContext) -> None:
    query = f"async () => {{ note('asked', {{}}); return {{token: '{room.product.token('alice')}'}}; }}"
    give(context, agent=f"{{query: {query}, cacheTtl: 4000}}")
    tab = room.open("first")
    tab.wait("harness.events.filter(e => e.kind === 'asked').length === 2", what="the next question")
    first, second = [event["at"] for event in tab.events("asked")]
    assert second - first >= 3900
    room.ask_and_rest(tab, "say: hello")
    room.rest()


def test_async_query_is_asked_again_after_a_lost_line(room: Room, context: BrowserContext, proxy: CuttingProxy) -> None:
    """A token may have run out meanwhile, whatever the cache says."""
    query = f"async () => {{ note('asked', {{}}); return {{token: '{room.product.token('alice')}'}}; }}"
    give(context, agent=f"{{query: {query}, cacheTtl: 60000}}")
    tab = room.open("first", port=proxy.port)
    proxy.cut()
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2", what="the next line")
    assert count(tab, "asked") == 2
    room.ask_and_rest(tab, "say: hello")
    room.rest()


def test_async_query_is_asked_again_for_other_dependencies(room: Room, context: BrowserContext) -> None:
    """Any render will do to see that they have changed, here one for a state."""
    token = room.product.token("alice")
    query = f"async () => {{ note('asked', {{}}); return {{token: '{token}', whose: globalThis.whose ?? 'hers'}}; }}"
    give(context, agent=f"{{query: {query}, get queryDeps() {{ return [globalThis.whose]; }}, cacheTtl: 60000}}")
    tab = room.open("first", agent="board")
    assert "whose=hers" in tab.sockets[-1]
    tab.do("globalThis.whose = 'his'; harness.agent.setState({items: ['milk']})")
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2", what="a line of the other query")
    assert count(tab, "asked") == 2
    assert "whose=his" in tab.sockets[-1]


@LINES
def test_base_path_instead_of_agent_and_name(room_of: MakeRoom, context: BrowserContext, line: str) -> None:
    """The names come from the server's identity."""
    room = room_of(line=line)
    give(context, agent=f"{{basePath: 'agents/assistant', path: '{room.name}', agent: 'unknown', name: 'unknown'}}")
    tab = room.open("first")
    assert [(event["name"], event["agent"]) for event in tab.events("identity")] == [(room.name, "assistant")]
    assert tab.page.evaluate("() => [harness.agent.name, harness.agent.agent]") == [room.name, "assistant"]
    room.ask_and_rest(tab, "say: hello")
    room.rest()


def test_path_below_an_instance_is_the_same_instance(room: Room, context: BrowserContext) -> None:
    """It reaches the agent with the address; the conversation is the same, by socket and by HTTP."""
    other = room.open("at its own address")
    room.ask_and_rest(other, "say: hello")
    give(context, agent="{path: 'settings'}")
    tab = room.open("below")
    assert tab.sockets[0].split("?")[0].endswith(f"/agents/crier/{room.name}/settings")
    room.ask_and_rest(tab, "say: again")
    assert len(room.rest()) == 4


@pytest.mark.smoke("sdk7")
@LINES
def test_what_the_hook_returns(room_of: MakeRoom, line: str) -> None:
    room = room_of(line=line, agent="crier")
    tab = room.open("first")
    tab.page.evaluate("() => harness.agent.ready")
    found = tab.page.evaluate(
        """() => {
          const {agent, name, path, identified, state, connectionError, readyState, OPEN} = harness.agent;
          return {agent, name, path, identified, state: state ?? null, connectionError, isOpen: readyState === OPEN};
        }"""
    )
    assert found == {
        "agent": "crier",
        "name": room.name,
        "path": [{"agent": "crier", "name": room.name}],
        "identified": True,
        "state": None,
        "connectionError": None,
        "isOpen": True,
    }
    address = tab.page.evaluate("() => harness.agent.getHttpUrl()")
    assert address.split("?")[0].endswith(f"/agents/crier/{room.name}")
    messages = tab.page.evaluate(
        "([url, token]) => fetch(`${url}/get-messages?token=${token}`).then(answer => answer.json())",
        [address.split("?")[0], room.product.token("alice")],
    )
    assert messages == []


def test_default_time_limit_of_calls(room: Room, context: BrowserContext) -> None:
    give(context, agent=js({"defaultCallTimeout": 200}))
    tab = room.open("first")
    call = "([method, seconds]) => harness.agent.call(method, [seconds]).catch(error => error.message)"
    assert tab.page.evaluate(call, ["rest", 0]) == "rested"
    assert tab.page.evaluate(call, ["rest", 30]) == "RPC call to rest timed out after 200ms"


@pytest.mark.smoke
def test_events_of_the_socket(room: Room, context: BrowserContext, proxy: CuttingProxy) -> None:
    give(
        context,
        agent="""{
          onMessage: (event) => note('message', {type: JSON.parse(event.data).type}),
          onError: () => note('error', {}),
          protocol: 'ws', prefix: 'agents', maxRetries: 50, minReconnectionDelay: 50, maxReconnectionDelay: 200,
        }""",
    )
    tab = room.open("first", port=proxy.port)
    tab.do("harness.agent.send(JSON.stringify({type: 'announce', what: 'session'}))")
    for kind in ("cf_agent_session", "cf_agent_session_error"):
        tab.wait(f"harness.events.some(e => e.kind === 'message' && e.type === '{kind}')")
    kinds = {event["type"] for event in tab.events("message")}
    assert not kinds & {"cf_agent_identity", "cf_agent_mcp_servers"}  # the hook takes these itself
    proxy.cut()
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2")
    assert count(tab, "close") >= 1


def test_socket_that_the_page_closes_and_opens_again(room: Room) -> None:
    tab = room.open("first")
    tab.do("harness.agent.close()")
    tab.wait("harness.events.some(e => e.kind === 'close') && harness.agent.readyState !== harness.agent.OPEN")
    tab.do("harness.agent.reconnect()")
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2")
    room.ask_and_rest(tab, "say: back")
    room.rest()


def test_socket_that_is_not_enabled_stays_closed(room: Room, context: BrowserContext) -> None:
    give(context, agent=js({"enabled": False}))
    tab = room.open("first", is_waiting=False)
    tab.wait("harness.chat !== null", what="the hooks")
    assert tab.sockets == []
    assert not tab.events("open")


def test_page_that_decides_which_closes_are_final(room: Room, context: BrowserContext, proxy: CuttingProxy) -> None:
    give(
        context,
        agent="""{
          shouldReconnectOnClose: (event) => {
            note('asked', {code: event.code});
            return harness.events.filter((event) => event.kind === 'asked').length === 1;
          },
          minReconnectionDelay: 50, maxReconnectionDelay: 100,
        }""",
    )
    tab = room.open("first", port=proxy.port)
    proxy.cut()
    tab.wait("harness.events.filter(e => e.kind === 'open').length === 2", what="the next line")
    assert count(tab, "asked") == 1
    assert tab.page.evaluate("() => harness.agent.connectionError") is None
    proxy.cut()
    tab.wait("harness.agent.connectionError !== null", what="the hook's error")
    assert tab.page.evaluate("() => harness.chat.connectionError !== null")
    tab.page.wait_for_timeout(500)  # several times as long as it waited before
    assert (count(tab, "asked"), count(tab, "open"), len(tab.sockets)) == (2, 2, 2)
