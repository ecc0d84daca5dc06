"""What an extension may do is decided outside of it, at each call, and recorded: files, context, messages, network."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from chat.agent.think import Think
from chat.instance.instance import started_agent
from chat.user_code.extension_services import AgentServices
from tests.db.chat.turns.agents import extending  # noqa: F401 - serves the agents
from tests.unit.tools_app.sandbox.probes import PROBES, SECRET
from thinkproject.kernel.aio import db
from tools_app.core.origins import Origin
from tools_app.errors import ExtensionUnloaded, ToolError
from tools_app.extensions import records as call_records
from tools_app.extensions.bridge import HostBridge
from tools_app.extensions.host import ExtensionPlace
from tools_app.extensions.loaded import load_stored
from tools_app.extensions.runs import run_tool
from tools_app.extensions.services import Holder, ban_source, grant, set_enabled
from tools_app.models.extensions import Extension, ExtensionCall, ExtensionLevel

from .conftest import MakeRoom, Room

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

PROBE = """({ tools: {
  all: { execute: async ({ calls }, host) => {
    if (host === null) return "no host";
    const found = [];
    for (const [method, ...args] of calls) {
      try { found.push({ ok: await host[method](...args) }); } catch (error) { found.push({ error: error.message }); }
    }
    return found;
  } },
  get: { execute: async ({ url, options }) => {
    const response = await fetch(url, options);
    const headers = Object.fromEntries(response.headers);
    return { url: response.url, status: response.status, headers, redirected: response.redirected,
      text: await response.text() };
  } },
  until: { execute: async ({}, host) => {
    for (let number = 0; ; number++) {
      try { await host.listFiles("/"); } catch (error) { return { number, error: error.message }; }
    }
  } },
  code: { execute: async ({ body }, host) => await new (async () => {}).constructor("host", body)(host) },
} })"""


class Probe:
    """An extension of a room that does what the test says."""

    def __init__(self, room: Room, resolver: Any = None) -> None:
        self.room = room
        self.origins: list[tuple[Origin, str]] = []
        self.resolver = resolver

    async def load(self, *, blocks: Any = (), **permissions: Any) -> "Probe":
        manifest = {"name": "probe", "version": "1", "permissions": permissions, "context": list(blocks)}
        await self.room.handle.load_extension(manifest, PROBE)
        return self

    async def let_out(self, target: str) -> None:
        """There is no guard here."""

    async def run(self, tool: str, **given: Any) -> Any:
        row = await db(Extension.objects.get)
        (extension,) = await db(load_stored, self.room.key.owner_id, row.scope)
        agent = await started_agent(self.room.key)
        assert isinstance(agent, Think)
        bridge = HostBridge(
            extension=extension,
            services=AgentServices(agent),
            place=ExtensionPlace(owner_id=self.room.key.owner_id, scope=row.scope, turn_id="turn", call_id="call"),
            during=f"probe_{tool}",
            note_origin=lambda origin, source: self.origins.append((origin, source)),
            check_egress=self.let_out,
            **({} if self.resolver is None else {"resolver": self.resolver}),
        )
        return await run_tool(bridge, tool, given)

    async def call(self, *calls: Any) -> Any:
        """Call methods of the host: results, or the words of the refusal."""
        found = await self.run("all", calls=[list(each) for each in calls])
        return found if isinstance(found, str) else [each.get("ok", each.get("error")) for each in found]


def holder(room: Room, row: Extension) -> Holder:
    return Holder(level=ExtensionLevel.INSTANCE, owner_id=room.key.owner_id, scope=row.scope)


async def records() -> list[tuple[str, str, bool]]:
    """Recorded calls, oldest first."""
    rows = await db(lambda: list(ExtensionCall.objects.order_by("pk")))
    return [(row.method, row.subject, row.is_refused) for row in rows]


FILES = (["writeFile", "/a.txt", "hello"], ["readFile", "/a.txt"], ["listFiles"], ["deleteFile", "/a.txt"])


async def test_without_permissions_there_is_no_host(make_room: MakeRoom) -> None:
    probe = await Probe(make_room("extended")).load()
    assert await probe.call(*FILES) == "no host"


async def test_files_are_as_permitted(make_room: MakeRoom) -> None:
    room = make_room("extended")
    probe = await Probe(room).load(workspace="read-write")
    wrote, read, listed, deleted = await probe.call(*FILES)
    assert (wrote, read, deleted) == (None, "hello", True)
    assert listed == [{"name": "a.txt", "path": "/a.txt", "type": "file", "size": 5}]
    assert await probe.run("code", body="await host.writeFile('/b', new Uint8Array([0, 255])); return 1") == 1
    assert await room.handle.workspace.read_bytes("/b") == b"\x00\xff"
    row = await db(Extension.objects.get)
    await db(grant, holder(room, row), "probe", {"workspace": "read"})
    wrote, read, listed, deleted = await probe.call(*FILES)
    assert wrote == deleted == "The extension 'probe' may not write files: its workspace permission is 'read'."
    assert (read, [each["name"] for each in listed]) == (None, ["b"])
    assert (await records())[-4:] == [
        ("writeFile", "/a.txt", True),
        ("readFile", "/a.txt", False),
        ("listFiles", "", False),
        ("deleteFile", "/a.txt", True),
    ]


async def test_the_host_believes_nothing(make_room: MakeRoom) -> None:
    probe = await Probe(make_room("extended")).load(workspace="read-write")
    odd = [["readFile"], ["readFile", 5], ["readFile", {"a": 1}], ["readFile", "/../../etc/passwd"]]
    odd += [["writeFile", "/x", {"$bytes": "!"}], ["writeFile", "/x", 7], ["writeFile", "", "x"]]
    found = await probe.call(*odd)
    assert found[3] is None  # within the workspace, where there is no such file
    assert all(isinstance(each, str) for each in [*found[:3], *found[4:]])
    body = "const b = globalThis.host; return [b === undefined, Object.isFrozen(host), typeof host.constructor.nothing]"
    assert await probe.run("code", body=body) == [True, True, "undefined"]


async def test_context_is_as_permitted(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await room.handle.context.add("shared")
    await room.handle.context.replace("shared", "of the conversation")
    probe = await Probe(room).load(blocks=[{"label": "scratchpad", "description": "Notes", "maxTokens": 50}])
    own, full, other, wrote = await probe.call(
        ["setContext", "scratchpad", "mine"],
        ["getContext", "probe_scratchpad"],
        ["getContext", "shared"],
        ["setContext", "shared", "taken"],
    )
    assert (own, full) == (None, "mine")
    assert other == "The extension 'probe' may not read the context block 'shared'."
    assert wrote == "The extension 'probe' may not write the context block 'shared'."
    (long,) = await probe.call(["setContext", "scratchpad", "word " * 500])
    assert "50" in long
    row = await db(Extension.objects.get)
    manifest = {**row.manifest, "permissions": {"context": {"read": "all", "write": ["shared"]}}}
    await room.handle.update_extension("probe", manifest=manifest)
    other, wrote, own = await probe.call(
        ["getContext", "shared"], ["setContext", "shared", "written"], ["setContext", "scratchpad", "x"]
    )
    assert (other, wrote) == ("of the conversation", None)
    assert "may not write" in own
    block = await room.handle.context.block("shared")
    assert block is not None
    assert block.content == "written"


async def test_a_block_of_the_agent_is_never_an_extensions(make_room: MakeRoom) -> None:
    room = make_room("guarded")
    manifest = {"name": "notes", "version": "1", "context": [{"label": "private"}]}
    await room.handle.load_extension(manifest, PROBE)
    read, wrote = await Probe(room).call(["getContext", "private"], ["setContext", "private", "x"])
    assert "may not read" in read
    assert "may not write" in wrote


async def test_the_conversation_is_as_permitted(make_room: MakeRoom) -> None:
    room = make_room("extended")
    await room.say("say: hello")
    probe = await Probe(room).load(messages="read", session={"sendMessage": True, "metadata": True})
    calls = (["getMessages", 5], ["sendMessage", "noted"], ["getSessionInfo"], ["sendMessage", "  "])
    found, sent, info, empty = await probe.call(*calls)
    assert [(each["role"], each["content"]) for each in found] == [("user", "say: hello"), ("assistant", "hello")]
    assert info == {"agent": "extended", "name": "room", "messageCount": 3}
    assert "1 to" in empty
    last = (await room.transcript())[-1]
    assert (last["id"], last["metadata"]) == (sent, {"extension": "probe"})
    row = await db(Extension.objects.get)
    await db(grant, holder(room, row), "probe", {"messages": "read"})
    _, sent, info, _ = await probe.call(*calls)
    assert "may not add messages" in sent
    assert "may not see facts" in info
    assert len(await room.transcript()) == 3


# The network


class Site:
    """A server on loopback, and what it was asked for."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(app, host="127.0.0.1")

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append((request.method, request.path, request.headers, await request.read()))
        if request.path == "/away":
            raise web.HTTPFound(f"http://localhost:{request.url.port}/elsewhere")
        if request.path == "/moved":
            raise web.HTTPFound("/here")
        return web.Response(status=418 if request.path == "/odd" else 200, text="tea", headers={"X-Kind": "pot"})

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server.port}{path}"


@pytest.fixture
async def own_site(settings: Any) -> AsyncIterator[Site]:
    settings.THINK_EXTENSIONS_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    found = Site()
    await found.server.start_server()
    yield found
    await found.server.close()


async def get(probe: Probe, url: str, **options: Any) -> Any:
    """Fetch within the extension: the response, or the words of the refusal."""
    try:
        return await probe.run("get", url=url, options=options)
    except ToolError as error:
        return error.message


async def test_without_a_network_permission_nothing_is_reached(make_room: MakeRoom, own_site: Site) -> None:
    probe = await Probe(make_room("extended")).load(network=False)
    assert "has no network" in await get(probe, own_site.url("/"))
    assert own_site.requests == []
    assert await records() == [("fetch", f"GET {own_site.url('/')}", True)]


async def test_named_hosts_are_reached_and_no_others(make_room: MakeRoom, own_site: Site) -> None:
    probe = await Probe(make_room("extended")).load(network=[f"http://127.0.0.1:{own_site.server.port}"])
    answer = await get(
        probe, own_site.url("/odd"), method="POST", body="milk", headers={"X-Sugar": "two", "Host": "other"}
    )
    assert (answer["status"], answer["text"], answer["headers"]["x-kind"]) == (418, "tea", "pot")
    method, _, headers, body = own_site.requests[0]
    assert (method, body, headers["X-Sugar"]) == ("POST", b"milk", "two")
    assert headers["Host"] == f"127.0.0.1:{own_site.server.port}"
    assert probe.origins == [(Origin.WEB, f"http://127.0.0.1:{own_site.server.port}")]
    moved = await get(probe, own_site.url("/moved"))
    assert (moved["url"], moved["redirected"]) == (own_site.url("/here"), True)
    before = len(own_site.requests)
    for url in (
        own_site.url("/", "localhost"),
        "https://example.org/",
        own_site.url("/").replace("http:", "https:"),
    ):
        assert "may not reach" in await get(probe, url)
    assert len(own_site.requests) == before
    assert "redirects elsewhere" in await get(probe, own_site.url("/away"))
    assert own_site.requests[-1][1] == "/away"
    by_hand = "return await host.fetch({url: 'http://127.0.0.1/', method: 'GET', headers: []})"
    with pytest.raises(ToolError):
        await probe.run("code", body=by_hand)


async def test_a_named_host_may_not_be_a_private_address(make_room: MakeRoom, own_site: Site, settings: Any) -> None:
    settings.THINK_EXTENSIONS_PRIVATE_NETWORKS = []
    probe = await Probe(make_room("extended")).load(
        network=[f"http://127.0.0.1:{own_site.server.port}", "metadata.test"]
    )
    assert "not public" in await get(probe, own_site.url("/"))

    async def inside(_host: str) -> list[str]:
        return ["169.254.169.254"]

    probe.resolver = inside
    assert "not public" in await get(probe, "https://metadata.test/latest/meta-data")
    assert own_site.requests == []
    assert [refused for _, _, refused in await records()] == [True, True]


async def test_a_name_that_resolves_differently_afterwards_changes_nothing(make_room: MakeRoom, own_site: Site) -> None:
    asked: list[str] = []

    async def rebinding(host: str) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    probe = Probe(make_room("extended"), rebinding)
    await probe.load(network=[f"http://rebind.test:{own_site.server.port}"])
    assert (await get(probe, own_site.url("/", "rebind.test")))["text"] == "tea"
    assert asked == ["rebind.test"]
    assert "not public" in await get(probe, own_site.url("/", "rebind.test"))


async def test_subdomains_are_reached_where_they_are_named(make_room: MakeRoom, own_site: Site) -> None:
    async def here(_host: str) -> list[str]:
        return ["127.0.0.1"]

    probe = await Probe(make_room("extended"), here).load(network=[f"http://*.example.test:{own_site.server.port}"])
    assert (await get(probe, own_site.url("/", "a.b.example.test")))["text"] == "tea"
    assert "may not reach" in await get(probe, own_site.url("/", "example.test"))
    assert "may not reach" in await get(probe, own_site.url("/", "badexample.test"))


async def test_every_host_is_reached_where_the_site_allows_it(
    make_room: MakeRoom, own_site: Site, settings: Any
) -> None:
    async def here(_host: str) -> list[str]:
        return ["127.0.0.1"]

    settings.THINK_EXTENSIONS_ANY_HOST = True
    probe = await Probe(make_room("extended"), here).load(network=True)
    assert "may not reach" in await get(probe, own_site.url("/", "any.test"))  # not its scheme's own port
    settings.THINK_EXTENSIONS_ANY_HOST = False
    assert "may not reach" in await get(probe, "https://any.test/")


# While it runs


async def until_it_calls() -> None:
    """Wait until the extension has called its host a few times."""
    for _ in range(400):
        if await db(ExtensionCall.objects.count) > 2:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it calls nothing")


async def test_a_permission_that_is_taken_away_counts_during_a_call(make_room: MakeRoom) -> None:
    room = make_room("extended")
    probe = await Probe(room).load(workspace="read")
    row = await db(Extension.objects.get)
    running = asyncio.create_task(probe.run("until"))
    await until_it_calls()
    await db(grant, holder(room, row), "probe", {})
    ended = await running
    assert "its workspace permission is 'none'" in ended["error"]
    assert (await records())[-1] == ("listFiles", "/", True)


@pytest.mark.parametrize("how", ["unload", "disable", "ban"])
async def test_an_extension_that_is_stopped_during_a_call_has_no_result(make_room: MakeRoom, how: str) -> None:
    room = make_room("extended")
    probe = await Probe(room).load(workspace="read")
    row = await db(Extension.objects.get)
    running = asyncio.create_task(probe.run("until"))
    await until_it_calls()
    if how == "unload":
        await room.handle.unload_extension("probe")
    elif how == "disable":
        await db(set_enabled, holder(room, row), "probe", False)
    else:
        await db(ban_source, row.sha256)
    with pytest.raises(ExtensionUnloaded, match="has been unloaded" if how == "unload" else "has been disabled"):
        await running
    assert (await records())[-1][2]


HARM = {
    "hangs": ("for (;;) ;", "timed out"),
    "waits for ever": ("await new Promise(() => {})", "timed out"),
    "floods its console": ("for (;;) console.log('x'.repeat(50_000))", "output"),
    "returns too much": ("return 'x'.repeat(3_000_000)", "output"),
    "calls without end": ("for (;;) host.listFiles('/').catch(() => {})", "output|timed out|memory"),
    "fills the memory": ("const all = []; for (;;) all.push(new Uint8Array(5_000_000).fill(1))", "memory"),
    "ends its process": ("Deno.exit(3)", "ended before"),
    "breaks the protocol": ("Deno.stdout.writeSync(new TextEncoder().encode('{}\\n')); for (;;) ;", "ended before"),
}


async def test_an_extension_that_does_harm_ends_its_own_call_only(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_SANDBOX = {"seconds": 2.0}
    room = make_room("extended")
    probe = await Probe(room).load(workspace="read")

    async def harmed(body: str, words: str) -> None:
        with pytest.raises(ToolError, match=f"(?i){words}"):
            await probe.run("code", body=body)

    pairs = list(HARM.values())
    for begin in range(0, len(pairs), 2):  # as many as one user may run at a time
        await asyncio.gather(*(harmed(body, words) for body, words in pairs[begin : begin + 2]))
    assert await probe.run("code", body="return 'well'") == "well"


@pytest.mark.long
async def test_every_way_out_is_closed(make_room: MakeRoom, tmp_path: Any, settings: Any, monkeypatch: Any) -> None:
    settings.THINK_SANDBOX = {"seconds": 4.0, "runs_per_user": 4}
    monkeypatch.setenv("SECRET_OF_THE_PARENT", SECRET)
    reached: list[bytes] = []

    async def hear(_reader: Any, writer: Any) -> None:
        reached.append(b"connected")
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    secret = tmp_path / "secret.json"
    secret.write_text(f'"{SECRET}"')
    probe = await Probe(make_room("extended")).load(workspace="read-write", network=["example.org"])

    async def escaped(name: str) -> str | None:
        body = PROBES[name].replace("FILE", str(secret)).replace("PORT", str(server.sockets[0].getsockname()[1]))
        try:
            value = await probe.run("code", body=f"const tools = host; {body}")
        except ToolError as error:
            return f"{name}: {error.message}" if SECRET in error.message else None
        return f"{name}: {value}"

    found = await asyncio.gather(*(escaped(name) for name in PROBES))
    assert [each for each in found if each] == []
    assert await probe.run("code", body="return 'alive'") == "alive"
    server.close()
    assert reached == []


async def test_the_newest_records_of_a_conversation_are_kept(make_room: MakeRoom, monkeypatch: Any) -> None:
    monkeypatch.setattr(call_records, "CALLS_KEPT", 3)
    probe = await Probe(make_room("extended")).load(workspace="read")
    await probe.call(*[["readFile", f"/{number}"] for number in range(7)])
    assert [subject for _, subject, _ in await records()] == ["/4", "/5", "/6"]


async def test_bytes_travel_both_ways(make_room: MakeRoom, own_site: Site) -> None:
    probe = await Probe(make_room("extended")).load(network=[f"http://127.0.0.1:{own_site.server.port}"])
    sent = bytes(range(256))
    body = f"const b = Uint8Array.fromBase64('{base64.b64encode(sent).decode()}');"
    body += f"const r = await fetch('{own_site.url('/')}', {{method: 'PUT', body: b}}); return (await r.bytes()).length"
    assert await probe.run("code", body=body) == 3
    assert own_site.requests[0][3] == sent
