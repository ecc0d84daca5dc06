// What the pages share: everything that a hook showed and did, for a test to read as `window.harness`.

import { Component, type ReactNode } from "react";
import { createRoot } from "react-dom/client";

interface Seen {
  at: number;
  status: string;
  isServerStreaming: boolean;
  isStreaming: boolean;
  isRecovering: boolean;
  isToolContinuation: boolean;
  error: string | null;
  messages: { id: string; role: string; text: string }[];
}

interface Happening {
  kind: string;
  at: number;
  [detail: string]: unknown;
}

export const query = new URLSearchParams(location.search);
// deno-lint-ignore no-explicit-any
type Any = any;
export const harness = {
  agent: null as Any,
  chat: null as Any, // what the hook returned last
  published: null as Any, // what the package exports
  runs: null as Any, // what `useAgentToolEvents` returned last
  transport: null as Any, // the socket's, on the page with `useChat`
  unmount: null as Any, // takes the page's hooks away
  stop: null as Any, // stops the turn on the server too, where the hook's own does not
  isProbing: false, // whether the page asks, as it opens, for something to resume, and notes the answer
  seen: [] as Seen[], // what each render showed, without repeats
  events: [] as Happening[], // open, close, identity, ready, probed, connection-error, turn-end, crash
};
Object.assign(globalThis, { harness });

export function note(kind: string, detail: Record<string, unknown> = {}) {
  harness.events.push({ kind, at: performance.now(), ...detail });
}

export function textOf(message: { parts: { type: string; text?: string }[] }): string {
  return message.parts.filter((part) => part.type === "text").map((part) => part.text).join("");
}

/** Keep what a render shows. */
export function see(chat: Any) {
  harness.chat = chat;
  const now: Seen = {
    at: performance.now(),
    status: chat.status,
    isServerStreaming: chat.isServerStreaming ?? false,
    isStreaming: chat.isStreaming ?? false,
    isRecovering: chat.isRecovering ?? false,
    isToolContinuation: chat.isToolContinuation ?? false,
    error: chat.error?.message ?? null,
    messages: chat.messages.map((message: Any) => ({ id: message.id, role: message.role, text: textOf(message) })),
  };
  const last = harness.seen.at(-1);
  if (!last || JSON.stringify({ ...last, at: 0 }) !== JSON.stringify({ ...now, at: 0 })) harness.seen.push(now);
}

class Boundary extends Component<{ children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };
  static getDerivedStateFromError() {
    return { hasFailed: true };
  }
  override componentDidCatch(error: Error) {
    note("crash", { text: String(error) });
  }
  override render() {
    return this.state.hasFailed ? "crashed" : this.props.children;
  }
}

export function show(app: ReactNode) {
  const root = createRoot(document.getElementById("root")!);
  harness.unmount = () => root.unmount();
  root.render(<Boundary>{app}</Boundary>);
}
