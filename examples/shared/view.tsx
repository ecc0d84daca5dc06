// What a conversation looks like: the same in each example. They differ in how the messages come and go.

import { type FormEvent, type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from "react";

// deno-lint-ignore no-explicit-any
type Part = any;
export interface Message {
  id: string;
  role: string;
  parts: Part[];
  metadata?: unknown;
}

interface Props {
  title: string;
  messages: Message[];
  isBusy: boolean;
  error?: Error;
  onSend: (text: string) => void;
  onStop: () => void;
  onAgain: () => void;
  onDecide: (approvalId: string, approved: boolean) => void;
  children?: ReactNode;
}

export function Conversation(props: Props) {
  const end = useRef<HTMLDivElement>(null);
  const { messages, isBusy, error } = props;
  useEffect(() => {
    const distance = document.documentElement.scrollHeight - innerHeight - scrollY;
    if (distance < 240) end.current?.scrollIntoView({ block: "end" });
  }, [messages]);
  const canAskAgain = !isBusy && messages.at(-1)?.role === "assistant";
  return (
    <>
      <header>
        <h1>{props.title}</h1>
        <p role="status">{isBusy ? "Answering…" : "Ready"}</p>
      </header>
      <main>
        {messages.length === 0 && <p className="empty">Ask something. The answer goes on if you reload the page.</p>}
        <ol aria-label="Messages">
          {messages.map((message) => (
            <li key={message.id} className={message.role}>
              <h2>{speaker(message)}</h2>
              {message.parts.map((part, index) => <PartView key={index} part={part} onDecide={props.onDecide} />)}
            </li>
          ))}
        </ol>
        {error && (
          <div role="alert">
            <p>{textOf(error)}</p>
            <button type="button" onClick={props.onAgain}>Try again</button>
          </div>
        )}
        {canAskAgain && !error && <button type="button" className="quiet" onClick={props.onAgain}>Answer again</button>}
        <div ref={end} className="end" />
      </main>
      {props.children}
      <Composer isBusy={isBusy} onSend={props.onSend} onStop={props.onStop} />
    </>
  );
}

/** Who says it: code has put what names a run into the conversation. */
function speaker(message: Message) {
  if (message.role !== "user") return "Assistant";
  return (message.metadata as { agentRun?: unknown } | undefined)?.agentRun ? "A worker" : "You";
}

export function PartView({ part, onDecide }: { part: Part; onDecide: Props["onDecide"] }) {
  if (part.type === "text") return part.text ? <p className="text">{part.text}</p> : null;
  if (part.type === "reasoning" && part.text) {
    return (
      <details>
        <summary>Thoughts</summary>
        <p className="text">{part.text}</p>
      </details>
    );
  }
  if (part.type === "file") {
    return (
      <p className="text">
        <a href={part.url}>{part.filename ?? part.mediaType}</a>
      </p>
    );
  }
  return "toolCallId" in part ? <Call part={part} onDecide={onDecide} /> : null;
}

const STATES: Record<string, string> = {
  "input-streaming": "is being asked",
  "input-available": "runs",
  "approval-requested": "waits for you",
  "approval-responded": "runs",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "was refused",
};

function Call({ part, onDecide }: { part: Part; onDecide: Props["onDecide"] }) {
  const tool = part.toolName ?? part.type.replace(/^tool-/, "");
  return (
    <>
      <details>
        <summary>{tool} · {STATES[part.state] ?? part.state}</summary>
        <pre tabIndex={0}>{JSON.stringify(part.input ?? {}, null, 2)}</pre>
        {part.state === "output-available" && <pre tabIndex={0}>{JSON.stringify(part.output, null, 2)}</pre>}
        {part.errorText && <p className="text">{part.errorText}</p>}
      </details>
      {part.state === "approval-requested" && (
        <p className="decide">
          <button type="button" onClick={() => onDecide(part.approval.id, true)}>Allow {tool}</button>
          <button type="button" className="quiet" onClick={() => onDecide(part.approval.id, false)}>Refuse</button>
        </p>
      )}
    </>
  );
}

function Composer({ isBusy, onSend, onStop }: Pick<Props, "isBusy" | "onSend" | "onStop">) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!text.trim() || isBusy) return;
    onSend(text);
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) submit(event);
  };
  return (
    <form onSubmit={submit} aria-label="Write a message">
      <label htmlFor="question">Your message</label>
      <textarea
        id="question"
        rows={Math.min(6, text.split("\n").length)}
        value={text}
        placeholder="Your message"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
      />
      {isBusy
        ? <button type="button" onClick={onStop}>Stop</button>
        : <button type="submit" disabled={!text.trim()}>Send</button>}
    </form>
  );
}

/** A refusal comes as a problem document; its `detail` is the text for people. */
export function textOf(error: Error): string {
  try {
    return JSON.parse(error.message).detail ?? error.message;
  } catch {
    return error.message;
  }
}
