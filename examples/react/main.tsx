// The published hooks `useAgent` and `useAgentChat`: one socket, every tab in step, resume without a line of code.

import { Suspense } from "react";
import { createRoot } from "react-dom/client";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent } from "agents/react";
import { name, server, token } from "./shared/place.ts";
import { Conversation } from "./shared/view.tsx";

function App() {
  const agent = useAgent({ host: new URL(server).host, agent: "assistant", name, query: { token } });
  const chat = useAgentChat({ agent });
  return (
    <Conversation
      title="useAgentChat over a socket"
      messages={chat.messages}
      isBusy={chat.isServerStreaming || chat.status === "submitted" || chat.status === "streaming"}
      error={chat.error}
      onSend={(text) => chat.sendMessage({ text })}
      onStop={() => chat.stop()}
      onAgain={() => chat.regenerate()}
      onDecide={(id, approved) => chat.addToolApprovalResponse({ id, approved })}
    />
  );
}

createRoot(document.getElementById("root")!).render(
  <Suspense fallback={<p className="empty">Loading…</p>}>
    <App />
  </Suspense>,
);
