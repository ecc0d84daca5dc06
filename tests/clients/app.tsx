// A page that mounts the published hooks, unchanged, and shows all of them to a test as `window.harness`.
//
// Query: host, agent, name, token (sent in the query, as clients that cannot set headers do).

import { Component, type ReactNode, Suspense, useEffect, useLayoutEffect } from "react";
import { createRoot } from "react-dom/client";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";

interface Seen {
  at: number;
  status: string;
  isServerStreaming: boolean;
  error: string | null;
  messages: { id: string; role: string; text: string }[];
}

interface Happening {
  kind: string;
  at: number;
  [detail: string]: unknown;
}

const query = new URLSearchParams(location.search);
const harness = {
  agent: null as ReturnType<typeof useAgent> | null,
  chat: null as ReturnType<typeof useAgentChat> | null,
  seen: [] as Seen[], // what each render showed, without repeats
  events: [] as Happening[], // open, close, identity, ready, connection-error, turn-end, crash
};
Object.assign(globalThis, { harness });

function note(kind: string, detail: Record<string, unknown> = {}) {
  harness.events.push({ kind, at: performance.now(), ...detail });
}

function textOf(message: { parts: { type: string; text?: string }[] }): string {
  return message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
}

function Chat({ agent }: { agent: ReturnType<typeof useAgent> }) {
  const chat = useAgentChat({ agent, onTurnEnd: (event) => note("turn-end", { ...event }) });
  useLayoutEffect(() => {
    harness.chat = chat;
    const now: Seen = {
      at: performance.now(),
      status: chat.status,
      isServerStreaming: chat.isServerStreaming,
      error: chat.error?.message ?? null,
      messages: chat.messages.map((message) => ({ id: message.id, role: message.role, text: textOf(message) })),
    };
    const last = harness.seen.at(-1);
    if (!last || JSON.stringify({ ...last, at: 0 }) !== JSON.stringify({ ...now, at: 0 })) harness.seen.push(now);
  });
  return (
    <ol>
      {chat.messages.map((message) => <li key={message.id} data-role={message.role}>{textOf(message)}</li>)}
    </ol>
  );
}

function App() {
  const token = query.get("token");
  const agent = useAgent({
    host: query.get("host") ?? location.host,
    agent: query.get("agent") ?? "assistant",
    name: query.get("name") ?? "default",
    query: token ? { token } : undefined,
    onOpen: () => note("open"),
    onClose: (event) => note("close", { code: event.code, reason: event.reason }),
    onIdentity: (name, kind) => note("identity", { name, agent: kind }),
    onConnectionError: (error) => note("connection-error", { code: error.code, reason: error.reason }),
  });
  harness.agent = agent;
  useEffect(() => {
    agent.ready.then(() => note("ready", { name: agent.name, agent: agent.agent }));
  }, [agent]);
  return (
    <Suspense fallback="loading">
      <Chat agent={agent} />
    </Suspense>
  );
}

class Boundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  state = { hasFailed: false };
  static getDerivedStateFromError() {
    return { hasFailed: true };
  }
  componentDidCatch(error: Error) {
    note("crash", { text: String(error) });
  }
  render() {
    return this.state.hasFailed ? "crashed" : this.props.children;
  }
}

createRoot(document.getElementById("root")!).render(<Boundary><App /></Boundary>);
