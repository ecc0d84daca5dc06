// A page that mounts the published hooks, unchanged, and shows all of them to a test as `window.harness`.
//
// Query: host, agent, name, token (sent in the query, as clients that cannot set headers do).

import { Suspense, useEffect, useLayoutEffect } from "react";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { harness, note, query, see, show, textOf } from "./harness.tsx";

function Chat({ agent }: { agent: ReturnType<typeof useAgent> }) {
  const chat = useAgentChat({ agent, onTurnEnd: (event) => note("turn-end", { ...event }) });
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

show(<App />);
