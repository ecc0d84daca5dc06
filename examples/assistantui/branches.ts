// The branch adapter: the server's tree of messages in assistant-ui. Every version of a message can be picked, picking one is
// stored, and what another tab or a reload shows is the same. Copy this file; it needs a conversation's address and nothing else.

import type { useChat } from "@ai-sdk/react";
import { useAISDKRuntime } from "@assistant-ui/react-ai-sdk";
import type { CreateUIMessage, UIMessage } from "ai";
import { useCallback, useEffect, useRef } from "react";

/** What the API says of a message, as far as it is used here. */
interface Item {
  id: string;
  role: UIMessage["role"];
  parts: UIMessage["parts"];
  metadata: unknown;
  sibling_ids: string[];
}

interface Page {
  items: Item[];
  has_more: boolean;
}

/** Messages with their parents, as assistant-ui takes them; `headId` is the end of the path that is shown. */
export interface Tree {
  headId: string | null;
  messages: { parentId: string | null; message: UIMessage }[];
}

/**
 * The tree around a path. Of the versions beside it the path knows no more than that they are there: each stands as an empty
 * message, and what it says comes when it is picked. So a page costs a page, however many branches there are.
 */
export function treeOf(path: Item[]): Tree {
  const messages = path.flatMap((item, index) => {
    const parentId = path[index - 1]?.id ?? null;
    const { id, role, parts, metadata } = item;
    const ids = item.sibling_ids.length ? item.sibling_ids : [id];
    return ids.map((version) => ({
      parentId,
      message: version === id ? { id, role, parts, metadata } : { id: version, role, parts: [] },
    }));
  });
  return { headId: path.at(-1)?.id ?? null, messages };
}

/** The messages of the path that a tree shows, root first. */
export function pathOf({ headId, messages }: Tree): UIMessage[] {
  const items = new Map(messages.map((item) => [item.message.id, item]));
  const path: UIMessage[] = [];
  for (let item = items.get(headId ?? ""); item; item = items.get(item.parentId ?? "")) path.unshift(item.message);
  return path;
}

/** One conversation of the product. `base` is its API's address, such as `http://127.0.0.1:8000/api/v1`. */
export class Branches {
  #id = "";

  constructor(
    private readonly base: string,
    private readonly agent: string,
    private readonly name: string,
    private readonly headers: Record<string, string> = {},
  ) {}

  /** The newest messages of the path that is shown, at most `limit`, and the versions beside them. */
  async load(limit = 100): Promise<Tree> {
    const page: Page = await this.#ask("GET", `/instances/${await this.#instance()}/messages?limit=${limit}`);
    return treeOf(page.items);
  }

  /** Show the branch of a message from now on, in every tab. */
  async select(messageId: string): Promise<void> {
    await this.#ask("PUT", `/instances/${await this.#instance()}/leaf`, { message_id: messageId });
  }

  async #instance(): Promise<string> {
    this.#id ||= (await this.#ask("POST", "/instances", { agent: this.agent, name: this.name })).id;
    return this.#id;
  }

  // deno-lint-ignore no-explicit-any
  async #ask(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await fetch(this.base + path, {
      method,
      headers: { ...this.headers, ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body ? JSON.stringify(body) : undefined,
    });
    if (!answer.ok) {
      throw new Error((await answer.json().catch(() => ({}))).detail ?? `The server answered ${answer.status}.`);
    }
    return answer.status === 204 ? null : answer.json();
  }
}

const isResting = (chat: ReturnType<typeof useChat>) => chat.status === "ready" || chat.status === "error";

/**
 * assistant-ui's runtime over `useChat`, with the branches of the server. Give `chat` the messages of `branches.load()` to
 * begin with. While an answer comes, `useChat` is what is shown; at its end the tree is read again. `onProblem` gets what
 * went wrong with that, and nothing once it goes well. Make `branches` once, outside of the component.
 */
export function useBranchRuntime(
  chat: ReturnType<typeof useChat>,
  branches: Branches,
  onProblem: (error?: Error) => void,
) {
  const reading = useRef(0);
  const now = useRef({ chat, onProblem });
  now.current = { chat, onProblem };

  const read = useCallback(async (before?: () => Promise<void>) => {
    const turn = ++reading.current;
    try {
      await before?.();
      const tree = await branches.load();
      // Something newer was asked for meanwhile, or an answer comes: its end reads again.
      if (turn !== reading.current || !isResting(now.current.chat)) return;
      importing.current(tree);
      now.current.onProblem();
    } catch (error) {
      now.current.onProblem(error as Error);
    }
  }, [branches]);

  const runtime = useAISDKRuntime(chat, {
    joinStrategy: "none", // a message here is a message there
    cancelPendingToolCallsOnSend: false, // a call that waits is the server's business
    toCreateMessage: toMessage,
    unstable_onBranchChange: ({ headId }) => {
      if (headId) read(() => branches.select(headId));
    },
  });
  const importing = useRef((_tree: Tree) => {});
  importing.current = (tree) => runtime.thread.importExternalState(tree);

  const isAtRest = isResting(chat);
  useEffect(() => {
    if (isAtRest) read();
  }, [isAtRest, read]);
  return runtime;
}

// deno-lint-ignore no-explicit-any
type Loose = any; // assistant-ui's parts differ from version to version

/** What was written, as the SDK sends it. */
function toMessage(message: Loose): CreateUIMessage<Loose> {
  const attached = (message.attachments ?? []).flatMap(({ name, contentType, content }: Loose) =>
    content.map((part: Loose) => ({ filename: name, mimeType: contentType, ...part }))
  );
  return {
    // An edited message is known by its id: the server puts the new text beside the old one. A new one gets its own.
    ...(message.sourceId ? { id: message.sourceId } : {}),
    role: message.role,
    parts: [...attached, ...message.content].flatMap(toPart),
    metadata: message.metadata,
  };
}

function toPart({ type, text, image, data, mimeType, filename }: Loose): Loose[] {
  if (type === "text") return [{ type, text }];
  if (type !== "image" && type !== "file") return []; // voices are not taken
  const content: string = image ?? data;
  const mediaType = /^data:([^;,]+)/.exec(content)?.[1] ?? mimeType ?? "application/octet-stream";
  const url = /^(data|https?|blob):|^\//.test(content) ? content : `data:${mediaType};base64,${content}`;
  return [{ type: "file", url, mediaType, ...(filename ? { filename } : {}) }];
}
