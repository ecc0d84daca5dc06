/// <reference lib="deno.ns" />
// The page's modules that talk to a server, against a real one on the loopback: lost connections, refusals, slow answers.
// Run by test_pure_modules.py.

import { Emitter } from "../../../static/src/app/lib/events.ts";
import { newId } from "../../../static/src/app/lib/ids.ts";
import { recall, recallAll, remember } from "../../../static/src/app/lib/storage.ts";
import { Api, ApiError } from "../../../static/src/app/net/api.ts";
import type { ClientFrame, ServerFrame } from "../../../static/src/app/net/frames.ts";
import { AgentSocket, type LineState } from "../../../static/src/app/net/socket.ts";
import type { Limit } from "../../../static/src/app/net/types.ts";
import { keptEntries, Outbox } from "../../../static/src/app/store/outbox.ts";
import type { Begun } from "../../../static/src/app/store/instances.ts";
import { arrived, keep, keptInHistory, Unsent } from "../../../static/src/app/store/unsent.ts";
import { kept, pause, same, until } from "./making.ts";

/** What a browser has and Deno has not. */
class Memory {
  [key: string]: unknown;
  getItem(key: string): unknown {
    return Object.hasOwn(this, key) ? this[key] : null;
  }
  setItem(key: string, value: string): void {
    this[key] = value;
  }
  removeItem(key: string): void {
    delete this[key];
  }
}
const define = (name: string, value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
const reset = () => {
  define("localStorage", new Memory());
  const history = { state: null as unknown, replaceState: (state: unknown) => void (history.state = state) };
  define("history", history);
};
define("document", { querySelector: () => ({ getAttribute: () => "the-token" }) });
Object.defineProperty(navigator, "onLine", { value: true, configurable: true });
reset();

/** A server whose handler the test gives, and its address. */
function serve(handler: (request: Request) => Response | Promise<Response>) {
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, handler);
  return { server, at: `127.0.0.1:${server.addr.port}` };
}

/** The server's end of a line, and the texts that came over it. */
interface Peer {
  socket: WebSocket;
  received: unknown[];
}

/** A server of sockets: `peers` are those that were opened. */
function serveSockets(onOpen: (socket: WebSocket) => void = () => {}) {
  const peers: Peer[] = [];
  const served = serve((request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    const peer: Peer = { socket, received: [] };
    socket.addEventListener("message", (event) => peer.received.push(event.data));
    socket.addEventListener("open", () => {
      peers.push(peer);
      onOpen(socket);
    });
    return response;
  });
  return { ...served, peers };
}

async function connected(at: string) {
  const socket = new AgentSocket(`ws://${at}/`);
  const states: LineState[] = [];
  const frames: ServerFrame[] = [];
  socket.on("state", (state) => states.push(state));
  socket.on("frame", (frame) => frames.push(frame));
  socket.connect();
  await until(() => socket.state !== "connecting");
  return { socket, states, frames };
}

const frame = (id: string): ClientFrame => ({ type: "cf_agent_stream_resume_ack", id });

Deno.test("a listener that throws does not keep the others from hearing", () => {
  const { error } = console;
  const heard: number[] = [];
  const reported: string[] = [];
  console.error = (value: Error) => reported.push(value.message);
  const emitter = new Emitter<{ news: number }>();
  emitter.on("news", () => {
    throw new Error("mine");
  });
  const off = emitter.on("news", (detail) => heard.push(detail));
  emitter.emit("news", 1);
  off();
  emitter.emit("news", 2);
  console.error = error;
  same([heard, reported], [[1], ["mine", "mine"]]);
});

Deno.test("frames arrive as objects with a type; anything else is left out", async () => {
  const { server, at } = serveSockets((socket) => {
    for (const text of ["no json", "null", "{}", '{"type": 1}', '{"type": "hello", "n": 2}']) socket.send(text);
  });
  const { socket, frames } = await connected(at);
  await until(() => frames.length);
  same(frames, [{ type: "hello", n: 2 }]);
  socket.close();
  await server.shutdown();
});

Deno.test("a connection that was lost is made again, and nothing is sent meanwhile", async () => {
  const { server, at, peers } = serveSockets();
  const { socket, states } = await connected(at);
  same(socket.send(frame("first")), true);
  await until(() => peers[0]?.received.length);
  peers[0].socket.close(1011, "restarting");
  await until(() => socket.state === "waiting");
  same([socket.send(frame("lost")), socket.code, socket.reason], [false, 1011, "restarting"]);
  const pause = socket.retryAt - Date.now();
  same([pause > 100, pause < 700], [true, true]);
  await until(() => socket.state === "open");
  same(states.filter((state) => state !== "connecting"), ["open", "waiting", "open"]);
  socket.close();
  await server.shutdown();
});

Deno.test("the pauses grow, and the network's return ends one at once", async () => {
  const { server, at, peers } = serveSockets((socket) => socket.close(1011));
  const { socket } = await connected(at);
  await until(() => peers.length === 3 && socket.state === "waiting");
  same(socket.retryAt - Date.now() > 700, true);
  dispatchEvent(new Event("online"));
  same(socket.state, "connecting");
  await until(() => peers.length === 4 && socket.state === "waiting");
  socket.retry();
  same(socket.state, "connecting");
  await until(() => peers.length === 5);
  socket.close();
  await server.shutdown();
});

Deno.test("a server that refuses is not asked again, one that is overloaded is", async () => {
  for (const [code, state] of [[1008, "refused"], [4403, "refused"], [4429, "waiting"]] as const) {
    const { server, at } = serveSockets((socket) => socket.close(code, "why"));
    const { socket } = await connected(at);
    await until(() => socket.state !== "open");
    same([code, socket.state, socket.reason], [code, state, "why"]);
    socket.close();
    await server.shutdown();
  }
});

Deno.test("a closed connection stays closed", async () => {
  const { server, at, peers } = serveSockets();
  const { socket } = await connected(at);
  await until(() => peers.length);
  socket.close();
  socket.connect();
  dispatchEvent(new Event("online"));
  await server.shutdown();
  same([peers.length, socket.send(frame("late"))], [1, false]);
});

const problemOf = async (api: Api, path: string) => {
  try {
    await api.request("GET", path);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [error.kind, error.status, error.code, error.isTemporary, error.message];
  }
  throw new Error("the request succeeded");
};

Deno.test("a request carries its token, and an empty answer is none", async () => {
  let seen: (string | null)[] = [];
  let zone: string | null = null;
  const { server, at } = serve(async (request) => {
    const { headers, method } = request;
    seen = [method, headers.get("x-csrftoken"), headers.get("content-type"), await request.text()];
    zone = headers.get("x-time-zone");
    return method === "DELETE" ? new Response(null, { status: 204 }) : Response.json({ id: "i" });
  });
  const api = new Api(`http://${at}`);
  same([await api.createInstance("a", "n", "t"), seen[1], seen[2]], [{ id: "i" }, "the-token", "application/json"]);
  same([await api.deleteInstance("i/1"), seen], [null, ["DELETE", "the-token", null, ""]]);
  await api.instance("i");
  same(seen, ["GET", null, null, ""]);
  same(zone, new Intl.DateTimeFormat().resolvedOptions().timeZone);
  await server.shutdown();
});

Deno.test("an error has the server's words, and says whether another try may help", async () => {
  const answers: Record<string, Response> = {
    "/quota": Response.json({ detail: "Too many.", code: "quota_exceeded" }, { status: 429 }),
    "/value": Response.json(
      { detail: "Invalid.", code: "input_invalid", data: { errors: [{ message: "too long" }] } },
      {
        status: 422,
      },
    ),
    "/proxy": new Response("<html>Bad gateway</html>", { status: 502 }),
    "/away": new Response("{}", { status: 401 }),
    "/odd": new Response("[]", { status: 404 }),
  };
  const { server, at } = serve((request) => answers[new URL(request.url).pathname]);
  const api = new Api(`http://${at}`);
  same(await problemOf(api, "/quota"), ["refused", 429, "quota_exceeded", true, "Too many."]);
  same(await problemOf(api, "/value"), ["refused", 422, "input_invalid", false, "Invalid: too long."]);
  same(await problemOf(api, "/proxy"), ["broken", 502, "", true, "The server couldn’t do this just now."]);
  same(await problemOf(api, "/away"), [
    "refused",
    401,
    "",
    false,
    "You are signed out. Sign in again to continue.",
  ]);
  same(await problemOf(api, "/odd"), ["refused", 404, "", false, "The server refused this request."]);
  await server.shutdown();
  same(await problemOf(api, "/quota"), ["offline", 0, "", true, "The server can’t be reached."]);
});

Deno.test("a request that its asker gave up is no error of the network", async () => {
  let end = () => {};
  const { server, at } = serve(() => new Promise((answer) => end = () => answer(new Response("{}"))));
  const [api, patience] = [new Api(`http://${at}`), new AbortController()];
  const asked = api.context("i", { signal: patience.signal }).then(() => "answered", (error) => error.name);
  patience.abort();
  same(await asked, "AbortError");
  end();
  await server.shutdown();
});

const stored = () => keptEntries("a/b").map(({ requestId }) => requestId);
const failing = (isTemporary: boolean) => Object.assign(new Error("no"), { isTemporary });

/** An outbox whose deliveries end when the test ends them. */
function held() {
  const begun: string[] = [];
  const release: (() => void)[] = [];
  const outbox = new Outbox("a/b", ({ requestId }) => {
    begun.push(requestId);
    return new Promise<void>((go) => release.push(go));
  });
  return { outbox, begun, release };
}

Deno.test("messages leave in order, one at a time, and are kept until they are accepted", async () => {
  reset();
  const { outbox, begun, release } = held();
  outbox.add(kept(1));
  outbox.add(kept(2));
  same([begun, stored()], [["req_1"], ["req_1", "req_2"]]);
  release[0]();
  await until(() => begun.length === 2);
  same([begun, stored()], [["req_1", "req_2"], ["req_2"]]);
  release[1]();
  await until(() => !stored().length);
  same(outbox.entries.map(({ state }) => state), ["accepted", "accepted"]);
  outbox.settle(new Set(["msg_1"]));
  same(outbox.entries.map(({ requestId }) => requestId), ["req_2"]);
  outbox.settle(new Set(), performance.now() + 1);
  same(outbox.entries, []);
  outbox.close();
});

Deno.test("a limit is kept as one, with its end, and what waits goes out by itself when it is over", async () => {
  reset();
  let full = true;
  const { server, at } = serve(() =>
    full
      ? Response.json({
        detail: "You have sent 2 messages within a minute.",
        data: { retry_after_seconds: 1, passes: true },
      }, {
        status: 429,
      })
      : Response.json({})
  );
  const seen: Limit[] = [];
  const hear = (event: Event) => seen.push((event as CustomEvent<Limit>).detail);
  addEventListener("limit", hear);
  const api = new Api(`http://${at}`);
  const outbox = new Outbox("a/limited", async () => void await api.submitTurn("i", {}));
  outbox.add(kept(1));
  await until(() => outbox.entries[0].state === "waiting");
  const [{ limit, error, tries }] = outbox.entries;
  same([limit?.text, limit?.passes, limit?.isShown], ["You have sent 2 messages within a minute.", true, true]);
  same([error, tries, seen.length, seen[0] === limit], ["", 0, 1, true]);
  full = false;
  await until(() => outbox.entries[0].state === "accepted");
  same(Date.now() >= limit!.endsAt, true);
  outbox.close();
  removeEventListener("limit", hear);
  await server.shutdown();
});

Deno.test("a limit of room is no reason to try again by itself", async () => {
  reset();
  let asked = 0;
  const { server, at } = serve(() => {
    asked += 1;
    const body = {
      detail: "You can keep 3 files. Delete some first.",
      data: { retry_after_seconds: 60, passes: false },
    };
    return Response.json(body, { status: 429 });
  });
  const api = new Api(`http://${at}`);
  const outbox = new Outbox("a/full", async () => void await api.submitTurn("i", {}));
  outbox.add(kept(1));
  await until(() => outbox.entries[0].state === "refused");
  same([outbox.entries[0].limit?.passes, outbox.entries[0].error, asked], [
    false,
    "You can keep 3 files. Delete some first.",
    1,
  ]);
  outbox.close();
  await server.shutdown();
});

Deno.test("one that waits holds back those behind it; one that was refused does not", async () => {
  reset();
  const sent: string[] = [];
  let answer: Error | null = failing(true);
  const outbox = new Outbox("a/b", (item) => {
    sent.push(item.requestId);
    return answer ? Promise.reject(answer) : Promise.resolve();
  });
  outbox.add(kept(1));
  await until(() => outbox.entries[0].state === "waiting");
  outbox.add(kept(2));
  await until(() => outbox.entries[0].tries === 2);
  await pause(100); // what is held back would go at once
  same([sent, outbox.entries.map(({ state }) => state)], [["req_1", "req_1"], ["waiting", "waiting"]]);
  answer = failing(false);
  outbox.retry("req_1");
  await until(() => outbox.entries.every(({ state }) => state === "refused"));
  same([outbox.entries.map(({ error }) => error), stored()], [["no", "no"], ["req_1", "req_2"]]);
  answer = null;
  outbox.retry("req_2");
  await until(() => outbox.entries[1].state === "accepted");
  outbox.remove("req_1");
  same(stored(), []);
  outbox.close();
});

Deno.test("what was on its way when the page closed is sent again by the next, with the same ids", async () => {
  reset();
  const first = new Outbox("a/b", () => new Promise(() => {}));
  first.add(kept(1));
  first.close();
  const sent: unknown[] = [];
  const second = new Outbox("a/b", ({ requestId, body }) => {
    sent.push([requestId, body]);
    return Promise.resolve();
  });
  await until(() => sent.length);
  same(sent, [["req_1", { text: 1 }]]);
  second.close();
});

Deno.test("a pause ends when the network returns", async () => {
  reset();
  let isDown = true;
  const outbox = new Outbox("a/b", () => isDown ? Promise.reject(failing(true)) : Promise.resolve());
  outbox.add(kept(1));
  await until(() => outbox.entries[0].state === "waiting");
  isDown = false;
  dispatchEvent(new Event("online"));
  await until(() => outbox.entries[0].state === "accepted");
  outbox.close();
});

Deno.test("a full or forbidden storage loses nothing of what is on the page", () => {
  reset();
  localStorage.setItem = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  same([remember("draft", "x"), recall("draft", "none")], [false, "none"]);
  localStorage["think.broken"] = "{";
  same([recall("broken", 1), recallAll("nothing")], [1, []]);
  const outbox = new Outbox("a/b", () => new Promise(() => {}));
  outbox.add(kept(1));
  same(outbox.entries.length, 1);
  outbox.close();
});

Deno.test("a first message whose tab was closed is sent in the background", async () => {
  reset();
  const here: Begun = { agent: "Assistant", name: "here", isTemporary: false, projectId: "prj_1" };
  const away: Begun = { agent: "Assistant", name: "away", isTemporary: true, projectId: null };
  for (const [instance, id] of [[here, 1], [away, 2]] as const) {
    remember(`outbox.${instance.agent}/${instance.name}`, [kept(id)]);
    keep(instance);
  }
  same(keptInHistory(), away);
  const delivered: unknown[] = [];
  const unsent = new Unsent({
    deliver: ({ instance: { name, isTemporary } }, sent) =>
      Promise.resolve(delivered.push([name, isTemporary, sent.requestId])),
    refused: () => false,
  });
  unsent.take(here);
  await until(() => delivered.length);
  same(delivered, [["away", true, "req_2"]]); // it is begun as it was meant
  arrived(away);
  same(recallAll("unsent."), [["here", here]]);
});

Deno.test("one that the server refuses there is handed over once", async () => {
  reset();
  const away = { agent: "Assistant", name: "away", isTemporary: false, projectId: null };
  remember("outbox.Assistant/away", [kept(1)]);
  keep(away);
  const refused: unknown[] = [];
  const unsent = new Unsent({
    deliver: () => Promise.reject(failing(false)),
    refused: (instance, { requestId, error }) => Boolean(refused.push([instance.name, requestId, error])),
  });
  unsent.take({ name: "here" });
  await until(() => refused.length);
  same([refused, recall("outbox.Assistant/away")], [[["away", "req_1", "no"]], null]);
  unsent.take({ name: "here" });
  same(recallAll("unsent."), []);
});

Deno.test("ids are long, prefixed and differ", () => {
  same(/^req_[0-9a-z]{20}$/.test(newId("req")), true);
  same(new Set(Array.from({ length: 100 }, () => newId("x"))).size, 100);
});

Deno.test("a message that is taken back while another is on its way is not sent", async () => {
  reset();
  const { outbox, begun, release } = held();
  outbox.add(kept(1));
  outbox.add(kept(2));
  outbox.remove("req_2");
  release[0]();
  await until(() => outbox.entries[0].state === "accepted");
  same([begun, outbox.entries.length], [["req_1"], 1]);
  outbox.close();
});

Deno.test("an entry that changes is another object, and the store says so", async () => {
  reset();
  const outbox = new Outbox("a/b", () => Promise.resolve());
  outbox.add(kept(1));
  const [{ currentVersion }, sending] = [outbox, outbox.entries[0]];
  await until(() => outbox.entries[0].state === "accepted");
  same([sending.state, sending === outbox.entries[0], outbox.currentVersion > currentVersion], [
    "sending",
    false,
    true,
  ]);
  outbox.close();
});
