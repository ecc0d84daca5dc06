// A page with the AI SDK's own `useChat`, without any hook of the agents' packages.
//
// Query: host, agent, name, token as on the other page (without a host: the page's own origin and its cookie);
// transport: `http` (the SDK's own), `socket` (`agents/chat/transport`) or `sdk` (the SDK's own socket); twice: each request is sent twice; body: custom fields of
// each request, as JSON; own: the page makes the `Chat` itself, as pages with AI SDK 6 must that resume after a lost line.

import { useEffect, useLayoutEffect, useMemo, useState } from "react";
import { Chat as ReactChat, useChat } from "@ai-sdk/react";
import * as sdk from "ai";
import {
  type ChatInit,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { WebSocketChatTransport } from "agents/chat/transport";
import { useAgent } from "agents/react";
import { harness, note, query, see, show, textOf } from "./harness.tsx";

const host = query.get("host");
const agentName = query.get("agent") ?? "assistant";
const name = query.get("name") ?? "default";
const token = query.get("token");
const base = `${host ? `http://${host}` : ""}/agents/${agentName}/${name}`;
const fields: Record<string, unknown> | null = JSON.parse(query.get("body") ?? "null");
const headers: Record<string, string> = token ? { Authorization: `Bearer ${token}` } : {};

async function fetchTwice(url: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const [first] = await Promise.all([fetch(url, init), fetch(url, init)]);
  return first;
}

/** Say when the page has asked whether there is something to resume: what is sent before would be a race. */
// deno-lint-ignore no-explicit-any
function watched(transport: any) {
  const reconnect = transport.reconnectToStream.bind(transport);
  // deno-lint-ignore no-explicit-any
  transport.reconnectToStream = async (options: any) => {
    try {
      return await reconnect(options);
    } finally {
      setTimeout(() => note("ready"), 0);
    }
  };
  return transport;
}

// deno-lint-ignore no-explicit-any
function Chat({ transport, initial }: { transport: any; initial: UIMessage[] }) {
  const [options] = useState<ChatInit<UIMessage>>({
    messages: initial,
    transport,
    onFinish: ({ isAbort, isError }) => note("turn-end", { isAbort, isError }),
    sendAutomaticallyWhen: (state) =>
      lastAssistantMessageIsCompleteWithToolCalls(state) ||
      lastAssistantMessageIsCompleteWithApprovalResponses(state),
  });
  const [own] = useState(() => query.has("own") ? { chat: new ReactChat(options) } : options);
  const chat = useChat({ ...own, resume: true });
  useLayoutEffect(() => see(chat));
  harness.stop = async () => {
    await chat.stop();
    if (query.get("transport") === "sdk") return;
    await fetch(`${base}/chat/${chat.id}/stream`, { method: "DELETE", headers });
  };
  return (
    <ol>
      {chat.messages.map((message) => <li key={message.id} data-role={message.role}>{textOf(message)}</li>)}
    </ol>
  );
}

function OverHttp({ initial }: { initial: UIMessage[] }) {
  const transport = useMemo(() => {
    const fetching = query.has("twice") ? { fetch: fetchTwice as typeof fetch } : {};
    const body = fields ? { body: fields } : {};
    return watched(
      new DefaultChatTransport({ api: `${base}/chat`, ...(token ? { headers } : {}), ...fetching, ...body }),
    );
  }, []);
  return <Chat transport={transport} initial={initial} />;
}

/** Over the SDK's own socket, which AI SDK 6 does not have. */
function OverSdkSocket({ initial }: { initial: UIMessage[] }) {
  const transport = useMemo(() => {
    // deno-lint-ignore no-explicit-any
    const Transport = (sdk as any).WebSocketChatTransport;
    const address = { url: `${base}/chat`, ...(token ? { params: { token } } : {}) };
    return harness.transport = watched(new Transport({ ...address, ...(fields ? { body: fields } : {}) }));
  }, []);
  return <Chat transport={transport} initial={initial} />;
}

function OverSocket({ initial }: { initial: UIMessage[] }) {
  const agent = useAgent({
    host: host ?? location.host,
    agent: agentName,
    name,
    query: token ? { token } : undefined,
    onOpen: () => note("open"),
    onClose: (event) => note("close", { code: event.code }),
  });
  harness.agent = agent;
  const transport = useMemo(
    () =>
      watched(
        new WebSocketChatTransport({
          agent,
          cancelOnClientAbort: true,
          prepareBody: () => fields ?? {},
          // deno-lint-ignore no-explicit-any
          ...(globalThis as any).given?.transport,
        }),
      ),
    [agent],
  );
  harness.transport = transport;
  useEffect(() => {
    // What `useAgentChat` does for its users: hands the answers to a resume to the transport, and shows a message as the
    // server says that it is. The transport itself reads only the chunks of its own requests.
    const listener = (event: MessageEvent) => {
      const data = JSON.parse(event.data);
      if (data.type === "cf_agent_stream_resuming") transport.handleStreamResuming(data);
      if (data.type === "cf_agent_stream_resume_none") transport.handleStreamResumeNone(data);
      if (data.type === "cf_agent_stream_pending") transport.handleStreamPending();
      if (data.type === "cf_agent_message_updated") {
        harness.chat.setMessages((shown: UIMessage[]) =>
          shown.map((it) => it.id === data.message.id ? data.message : it)
        );
      }
    };
    agent.addEventListener("message", listener);
    return () => agent.removeEventListener("message", listener);
  }, [agent, transport]);
  return <Chat transport={transport} initial={initial} />;
}

async function load(): Promise<UIMessage[]> {
  const answer = await fetch(`${base}/get-messages`, { headers });
  return answer.ok ? await answer.json() : [];
}

const WAYS = { http: OverHttp, socket: OverSocket, sdk: OverSdkSocket };
const Way = WAYS[(query.get("transport") ?? "http") as keyof typeof WAYS];
load().then((initial) => show(<Way initial={initial} />));
