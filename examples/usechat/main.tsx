// The AI SDK's `useChat` with its own HTTP transport. There is nothing of this project in the page's packages.

import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { createRoot } from "react-dom/client";
import { name, server, token } from "./shared/place.ts";
import { Conversation } from "./shared/view.tsx";

const base = `${server}/agents/assistant/${encodeURIComponent(name)}`;
const headers = { Authorization: `Bearer ${token}` };
const transport = new DefaultChatTransport<UIMessage>({ api: `${base}/chat`, headers });

function App({ initial }: { initial: UIMessage[] }) {
  const chat = useChat({
    messages: initial,
    transport,
    resume: true, // an answer that runs when the page is loaded goes on
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const stop = async () => {
    // The answer belongs to the server and goes on without this page, so it is asked to end it.
    const ended = fetch(`${base}/chat/${chat.id}/stream`, { method: "DELETE", headers, keepalive: true });
    await chat.stop(); // ends the request
    await ended;
  };
  return (
    <Conversation
      title="useChat over HTTP"
      messages={chat.messages}
      isBusy={chat.status === "submitted" || chat.status === "streaming"}
      error={chat.error}
      onSend={(text) => chat.sendMessage({ text })}
      onStop={stop}
      onAgain={() => chat.regenerate()}
      onDecide={(id, approved) => chat.addToolApprovalResponse({ id, approved })}
    />
  );
}

const answer = await fetch(`${base}/get-messages`, { headers });
const initial: UIMessage[] = answer.ok ? await answer.json() : [];
createRoot(document.getElementById("root")!).render(<App initial={initial} />);
