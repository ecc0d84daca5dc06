/// <reference lib="deno.ns" />
// Servers, extensions and what they ask, in words; permissions one by one. Run by test_pure_modules.py.

import "../../../static/src/app/messages/later.ts";
import type { Extension, Server } from "../../../static/src/app/net/tools_api.ts";
import { askedExtension, askedKind, askedSampling } from "../../../static/src/app/store/asked.ts";
import { manifestIn, permissionList, type Permissions } from "../../../static/src/app/store/extension_facts.ts";
import { factsOf, isOnItsWay, stateOf, toReview } from "../../../static/src/app/store/server_facts.ts";

function same(found: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
}

const ALL: Permissions = {
  network: ["a.example", "b.example"],
  workspace: "read-write",
  context: { read: ["notes"], write: "own" },
  messages: "read",
  session: { sendMessage: true, metadata: false },
};

const listOf = (granted: Permissions) =>
  permissionList({ requested: { ...ALL }, granted: { ...granted } } as Pick<Extension, "requested" | "granted">);

Deno.test("each permission that a manifest asks for is one of its own", () => {
  same(listOf(ALL).map(({ text }) => text), [
    "Read files",
    "Change and delete files",
    "Send data to a.example",
    "Send data to b.example",
    "Read the messages of the conversation",
    "Add messages to the conversation",
    "Read “notes” of what the model reads",
  ]);
  if (!listOf(ALL).every(({ isGranted }) => isGranted)) throw new Error("all of it is granted");
});

Deno.test("withdrawing one permission leaves the others as they are", () => {
  const [readFiles, writeFiles, hostA, , messages] = listOf(ALL);
  same(readFiles.set(false), { ...ALL, workspace: "none" });
  same(writeFiles.set(false), { ...ALL, workspace: "read" });
  same(hostA.set(false), { ...ALL, network: ["b.example"] });
  same(messages.set(false), { ...ALL, messages: "none" });
});

Deno.test("a permission is given back within what the manifest asks for", () => {
  const less = { ...ALL, network: ["b.example"], workspace: "none" as const };
  const [readFiles, writeFiles, hostA, hostB] = listOf(less);
  same([readFiles, writeFiles, hostA, hostB].map(({ isGranted }) => isGranted), [false, false, false, true]);
  same(hostA.set(true).network, ["a.example", "b.example"]);
  same(writeFiles.set(true).workspace, "read-write");
});

Deno.test("every host at once is one permission", () => {
  const list = permissionList({ requested: { network: "all" }, granted: { network: "all" } });
  same(list.map(({ text }) => text), ["Send data to every public host"]);
  same(list[0].set(false).network, []);
});

Deno.test("a manifest is a JSON object", () => {
  same(manifestIn('{"name": "x"}'), { name: "x" });
  for (const text of ["{", "[]", "3", "null"]) {
    let problem = "";
    try {
      manifestIn(text);
    } catch (error) {
      problem = (error as Error).message;
    }
    if (!/JSON/.test(problem)) throw new Error(`${text}: ${problem}`);
  }
});

const server = (fields: Partial<Server>): Server => ({
  id: "m1",
  name: "Docs",
  scope: "user",
  allowed_issuer: "",
  client_id: "",
  redirect_url: "",
  transport: "http",
  url: "https://docs.example",
  state: "ready",
  reviewed: true,
  enabled: true,
  trusted: false,
  can_change: true,
  auth_url: null,
  signed_in: false,
  error: null,
  instructions: null,
  fingerprint: "f",
  tools: [],
  prompts: [],
  resources: [],
  skipped: [],
  ...fields,
});
const tool = (name: string, accepted: boolean): Server["tools"][number] => ({
  name,
  title: "",
  description: "",
  input_schema: {},
  read_only: null,
  accepted,
});

Deno.test("a server says how it stands", () => {
  const words = (fields: Partial<Server>) => stateOf(server(fields)).text;
  same(
    [
      words({}),
      words({ enabled: false, state: "failed" }),
      words({ state: "authenticating" }),
      words({ state: "failed" }),
      words({ state: "connecting" }),
      words({ state: "discovering" }),
      words({ state: "not-connected" }),
      words({ tools: [tool("a", false)] }),
      words({ tools: [tool("a", false)], trusted: true }),
    ],
    [
      "Ready",
      "Disabled",
      "Sign-in needed",
      "Not reachable",
      "Connecting…",
      "Reading its tools…",
      "Not connected",
      "Tools to review",
      "Ready",
    ],
  );
  same([isOnItsWay(server({ state: "connecting" })), isOnItsWay(server({}))], [true, false]);
  same(toReview(server({ tools: [tool("a", true), tool("b", false)] })).map(({ name }) => name), ["b"]);
  same(factsOf(server({ tools: [tool("a", true)] })), "1 tool · for all of your conversations");
});

Deno.test("only what a server asks is shown as its question", () => {
  const asked = "call-1:q1-0a1b2c3d";
  same(
    [
      askedKind("mcp_question", asked, {}),
      askedKind("mcp_question", asked, { url: "https://example.org" }),
      askedKind("mcp_sampling", asked, { messages: [] }),
      askedKind("mcp_question", "call-1", {}),
      askedKind("mcp_sampling", "call-1:1", { messages: [] }),
      askedKind("load_extension", "call-1", { source: "({})" }),
      askedKind("load_extension", "call-1", { source: 3 }),
      askedKind("pay", "call-1", { amount: 1 }),
    ],
    ["words", "link", "sampling", null, null, "extension", null, null],
  );
});

Deno.test("the question about an extension has every permission in words, and the rest as it was written", () => {
  const { permissions, rest, source } = askedExtension({
    name: "x",
    source: "({})",
    network: true,
    workspace_access: "read",
    messages: "read",
    session_info: true,
    read_context: "all",
    context: [{ label: "log" }],
    hooks: ["beforeTurn", "onChunk"],
  });
  same(permissions, [
    "Read files",
    "Send data to every public host",
    "Read the messages of the conversation",
    "See the conversation’s name and size",
    "Read all that the model reads",
    "Add “log” to what the model reads, and change it",
    "Change the settings of turns",
    "Follow the steps and calls of turns",
  ]);
  same([source, "source" in rest, rest.name], ["({})", false, "x"]);
});

Deno.test("what a server wants to ask the model is read as it was stored", () => {
  const given = { system: "Be brief.", messages: [{ role: "user", text: "Hi" }], max_tokens: 5 };
  same(askedSampling(given), { system: "Be brief.", messages: [{ role: "user", text: "Hi" }], maxTokens: 5 });
});
