// assistant-ui's own parts over the AI SDK's `useChat`, with the versions of each message as the server keeps them.

import { type UIMessage, useChat } from "@ai-sdk/react";
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  BranchPickerPrimitive,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadPrimitive,
  useAuiState,
} from "@assistant-ui/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { createContext, useContext, useEffect, useMemo, useRef, useState } from "react";
import { createRoot } from "react-dom/client";
import { Branches, pathOf, useBranchRuntime } from "./branches.ts";
import { name, server, token } from "./shared/place.ts";
import { PartView, textOf } from "./shared/view.tsx";

const base = `${server}/agents/assistant/${encodeURIComponent(name)}`;
const headers = { Authorization: `Bearer ${token}` };
const transport = new DefaultChatTransport<UIMessage>({ api: `${base}/chat`, headers });
const branches = new Branches(`${server}/api/v1`, "assistant", name, headers);

type Chat = ReturnType<typeof useChat>;
const ChatContext = createContext<Chat>(null!);

function App({ initial }: { initial: UIMessage[] }) {
  const sdk = useChat({
    messages: initial,
    transport,
    resume: true, // an answer that runs when the page is loaded goes on
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const stop = async () => {
    // The answer belongs to the server and goes on without this page, so it is asked to end it.
    const ended = fetch(`${base}/chat/${sdk.id}/stream`, { method: "DELETE", headers, keepalive: true });
    await sdk.stop(); // ends the request
    await ended;
  };
  const chat = { ...sdk, stop };
  const [problem, setProblem] = useState<Error>();
  const runtime = useBranchRuntime(chat, branches, setProblem);
  const error = chat.error ?? problem;
  const isBusy = chat.status === "submitted" || chat.status === "streaming";
  return (
    <ChatContext value={chat}>
      <AssistantRuntimeProvider runtime={runtime}>
        <header>
          <h1>assistant-ui</h1>
          <p role="status">{isBusy ? "Answering…" : "Ready"}</p>
        </header>
        <Thread error={error} isBusy={isBusy} onAgain={() => chat.regenerate()} />
      </AssistantRuntimeProvider>
    </ChatContext>
  );
}

function Thread({ error, isBusy, onAgain }: { error?: Error; isBusy: boolean; onAgain: () => void }) {
  const end = useRef<HTMLDivElement>(null);
  const messages = useAuiState((state) => state.thread.messages);
  useEffect(() => {
    const distance = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (distance < 240) end.current?.scrollIntoView({ block: "end" });
  }, [messages]);
  return (
    <ThreadPrimitive.Root asChild>
      <>
        <main>
          {messages.length === 0 && <p className="empty">Ask something, then edit it, or have it answered again.</p>}
          <ol aria-label="Messages">
            <ThreadPrimitive.Messages>
              {({ message }) => (message.composer.isEditing ? <Edit /> : <Message />)}
            </ThreadPrimitive.Messages>
          </ol>
          {error && !isBusy && (
            <div role="alert">
              <p>{textOf(error)}</p>
              <button type="button" onClick={onAgain}>Try again</button>
            </div>
          )}
          <div ref={end} className="end" />
        </main>
        <ComposerPrimitive.Root aria-label="Write a message">
          <ComposerPrimitive.Input aria-label="Your message" placeholder="Your message" maxRows={6} />
          {isBusy
            ? <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
            : <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>}
        </ComposerPrimitive.Root>
      </>
    </ThreadPrimitive.Root>
  );
}

function Message() {
  const { id, role } = useAuiState((state) => state.message);
  const chat = useContext(ChatContext);
  const parts = useMemo(() => chat.messages.find((message) => message.id === id)?.parts ?? [], [chat.messages, id]);
  const isMine = role === "user";
  const decide = (approvalId: string, approved: boolean) => chat.addToolApprovalResponse({ id: approvalId, approved });
  return (
    <MessagePrimitive.Root asChild>
      <li className={role}>
        <h2>{isMine ? "You" : "Assistant"}</h2>
        {parts.map((part, index) => <PartView key={index} part={part} onDecide={decide} />)}
        <div className="actions">
          <BranchPickerPrimitive.Root hideWhenSingleBranch className="versions" role="group" aria-label="Versions">
            <BranchPickerPrimitive.Previous className="quiet" aria-label="Previous version">
              ‹
            </BranchPickerPrimitive.Previous>
            <span>
              <BranchPickerPrimitive.Number /> / <BranchPickerPrimitive.Count />
            </span>
            <BranchPickerPrimitive.Next className="quiet" aria-label="Next version">›</BranchPickerPrimitive.Next>
          </BranchPickerPrimitive.Root>
          <ActionBarPrimitive.Root hideWhenRunning>
            {isMine
              ? <ActionBarPrimitive.Edit className="quiet">Edit</ActionBarPrimitive.Edit>
              : <ActionBarPrimitive.Reload className="quiet">Answer again</ActionBarPrimitive.Reload>}
          </ActionBarPrimitive.Root>
        </div>
      </li>
    </MessagePrimitive.Root>
  );
}

function Edit() {
  return (
    <MessagePrimitive.Root asChild>
      <li className="user">
        <ComposerPrimitive.Root className="edit" aria-label="Edit the message">
          <ComposerPrimitive.Input aria-label="Edited message" maxRows={6} autoFocus />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel className="quiet">Cancel</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </li>
    </MessagePrimitive.Root>
  );
}

const initial = pathOf(await branches.load());
createRoot(document.getElementById("root")!).render(<App initial={initial} />);
