// A page that mounts the published hooks, unchanged, and shows all of them to a test as `window.harness`.
//
// Query: host, agent, name, sub (JSON, a chain of sub-agents), token and mode (sent in the query, as clients that cannot
// set headers do); answers (what the page does with calls: `call`, `execute`, `fail`, else nothing), auto=no (no
// continuation by itself), wait (ms before it answers).
// A test may give each hook any option: `globalThis.given = {agent: {...}, chat: {...}}`, set before the page is loaded.

import { Suspense, useEffect, useLayoutEffect } from "react";
import * as published from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";
import { harness, note, query, see, show, textOf } from "./harness.tsx";

const { useAgentChat } = published;
// deno-lint-ignore no-explicit-any
const given: { agent?: any; chat?: any } = (globalThis as any).given ?? {};
harness.published = published;
harness.isProbing = given.chat?.resume !== false;

const pause = () => new Promise((resolve) => setTimeout(resolve, Number(query.get("wait") ?? 0)));

async function locate(input: unknown) {
  note("locate", { input });
  await pause();
  return { place: query.get("place") ?? "home", input };
}

type Options = Parameters<typeof useAgentChat>[0];

/** What the hook gets to know about calls. `execute` sends the tool's schema with each request. */
function answering(): Partial<Options> {
  const auto = query.get("auto") === "no" ? { autoContinueAfterToolResult: false } : {};
  switch (query.get("answers")) {
    case "execute":
      return {
        ...auto,
        experimental_automaticToolResolution: true,
        tools: { roam: { description: "Roam.", parameters: { type: "object" }, execute: locate } },
      };
    case "call":
      return {
        ...auto,
        onToolCall: async ({ toolCall, addToolOutput }) => {
          const output = await locate(toolCall.input);
          addToolOutput({ toolCallId: toolCall.toolCallId, output });
        },
      };
    case "fail":
      return {
        ...auto,
        onToolCall: async ({ toolCall, addToolOutput }) => {
          await pause();
          addToolOutput({ toolCallId: toolCall.toolCallId, state: "output-error", errorText: "no signal" });
        },
      };
    default:
      return auto;
  }
}

const options = answering();

function Chat({ agent }: { agent: ReturnType<typeof useAgent> }) {
  const chat = useAgentChat({ agent, onTurnEnd: (event) => note("turn-end", { ...event }), ...options, ...given.chat });
  useLayoutEffect(() => {
    see(chat);
  });
  return (
    <ol>
      {chat.messages.map((message) => <li key={message.id} data-role={message.role}>{textOf(message)}</li>)}
    </ol>
  );
}

function App() {
  const sent = ["token", "mode"].filter((key) => query.has(key)).map((key) => [key, query.get(key)]);
  const agent = useAgent({
    host: query.get("host") ?? location.host,
    agent: query.get("agent") ?? "assistant",
    name: query.get("name") ?? "default",
    sub: query.has("sub") ? JSON.parse(query.get("sub")!) : undefined,
    query: sent.length ? Object.fromEntries(sent) : undefined,
    onOpen: () => note("open"),
    onClose: (event) => note("close", { code: event.code, reason: event.reason }),
    onIdentity: (name, kind) => note("identity", { name, agent: kind }),
    onIdentityChange: (...names) => note("identity-change", { names }),
    onStateUpdate: (state, source) => note("state", { state, source }),
    onStateUpdateError: (text) => note("state-error", { text }),
    onConnectionError: (error) => note("connection-error", { code: error.code, reason: error.reason }),
    ...given.agent,
  });
  harness.agent = agent;
  harness.runs = useAgentToolEvents({ agent });
  useEffect(() => {
    // The hook says `ready` when its probe finds nothing, also where something was sent meanwhile: a race for tests.
    const listener = (event: MessageEvent) => {
      if (String(event.data).includes('"probeId"')) setTimeout(() => note("probed"), 0);
    };
    agent.addEventListener("message", listener);
    return () => agent.removeEventListener("message", listener);
  }, [agent]);
  useEffect(() => {
    agent.ready.then(() => note("ready", { name: agent.name, agent: agent.agent }));
  }, [agent]);
  return (
    <Suspense fallback="loading">
      <Chat agent={agent} />
    </Suspense>
  );
}

show(
  <Suspense fallback="loading">
    <App />
  </Suspense>,
);
