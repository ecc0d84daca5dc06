// The tools that a conversation has from elsewhere: of MCP servers, and of extensions. Lists, one of their items, or a form for
// a new one; one at a time, because the panel is narrow.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { type Extension, type Rule, type Server, ToolsApi } from "../net/tools_api.ts";
import { factsOf as extensionFacts, keyOf, stateOf as extensionState } from "../store/extension_facts.ts";
import { factsOf as serverFacts, isOnItsWay, stateOf as serverState } from "../store/server_facts.ts";
import { toolsPlace, type ToolsView } from "../store/tools_place.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { ExtensionForm } from "./extension_form.tsx";
import { ExtensionView } from "./extension_view.tsx";
import { Failure } from "./panel.tsx";
import { type Reading, useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";
import { RuleForm, RuleView } from "./rule_form.tsx";
import { RuleList } from "./rule_list.tsx";
import { ServerForm } from "./server_form.tsx";
import { ServerPaste } from "./server_paste.tsx";
import { ServerView } from "./server_view.tsx";
import { AddButton, Row } from "./tool_rows.tsx";

const LOOK_MS = 2_000; // while a server connects: the notification may be lost

/** What all parts of the view need. */
export interface Tools {
  api: ToolsApi;
  /** "" of a conversation that has not begun. */
  instanceId: string;
  reading: Reading<ToolLists>;
}

export interface ToolLists {
  servers: Server[];
  extensions: Extension[];
  rules: Rule[];
}

export function ToolsPanel({ conversation }: PanelProps) {
  const app = useApp();
  const { id } = conversation.instance;
  const [api] = useState(() => new ToolsApi(app.api, id));
  const reading = useReading(conversation, async (signal): Promise<ToolLists> => {
    const [servers, extensions, { items: rules }] = await Promise.all([
      api.servers(signal),
      api.extensions(signal),
      api.rules(signal),
    ]);
    return { servers, extensions, rules };
  });
  const soon = () => reading.soon();
  useEffect(() => {
    addEventListener("focus", soon); // a person has signed in on another tab
    const off = [conversation.events.on("servers", soon), conversation.events.on("listed", soon)];
    return () => {
      removeEventListener("focus", soon);
      off.forEach((stop) => stop());
    };
  }, []);
  const isBusy = reading.value?.servers.some(isOnItsWay) ?? false;
  useEffect(() => {
    if (isBusy) reading.watch(LOOK_MS);
  }, [reading.value]);
  useEffect(() => toolsPlace.enter(id), []);
  const { view, instanceId } = follow(toolsPlace);
  const last = useRef<ToolsView>({ kind: "list" }); // the row that gets the focus when its item is closed
  const shown: ToolsView = instanceId === id ? view : { kind: "list" };
  if (shown.kind !== "list") last.current = shown;
  const tools: Tools = { api, instanceId: id, reading };
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("servers.loading")}</p>;
  }
  return (
    <>
      <Problem text={reading.error} />
      <Shown tools={tools} lists={reading.value} view={shown} last={last.current} />
    </>
  );
}

interface ShownProps {
  tools: Tools;
  lists: ToolLists;
  view: ToolsView;
  last: ToolsView;
}

function Shown({ tools, lists, view, last }: ShownProps) {
  const close = () => toolsPlace.open({ kind: "list" });
  if (view.kind === "new-server") return <ServerForm tools={tools} close={close} />;
  if (view.kind === "paste-servers") return <ServerPaste tools={tools} close={close} />;
  if (view.kind === "new-extension") return <ExtensionForm tools={tools} close={close} />;
  if (view.kind === "server") {
    const server = lists.servers.find((item) => item.id === view.key);
    if (server) return <ServerView key={view.key} tools={tools} server={server} close={close} />;
  }
  if (view.kind === "extension") {
    const extension = lists.extensions.find((item) => keyOf(item) === view.key);
    if (extension) return <ExtensionView key={view.key} tools={tools} extension={extension} close={close} />;
  }
  if (view.kind === "new-rule") return <RuleForm tools={tools} rule={null} close={close} />;
  if (view.kind === "rule") {
    const rule = lists.rules.find((item, at) => (item.id || String(at)) === view.key);
    if (rule && !rule.may_change) return <RuleView key={view.key} rule={rule} close={close} />;
    if (rule) return <RuleForm key={view.key} tools={tools} rule={rule} close={close} />;
  }
  return <Lists tools={tools} lists={lists} last={last} />;
}

function Lists({ tools, lists: { servers, extensions, rules }, last }: Omit<ShownProps, "view">) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (last.kind === "list" || document.activeElement !== document.body) return;
    const id = "key" in last ? `${last.kind} ${last.key}` : last.kind;
    const rows = [...element.current!.querySelectorAll<HTMLElement>("[data-row]")];
    const row = rows.find((item) => item.dataset.row === id);
    (row ?? document.getElementById("panel-tools"))?.focus({ preventScroll: !row });
  }, []);
  return (
    <div class="tools-lists" ref={element}>
      <section aria-label={t("servers.title")}>
        <h2>{t("servers.title")}</h2>
        <p class="muted">{t(servers.length ? "servers.about" : "servers.none")}</p>
        <ul class="tools-rows">
          {servers.map((server) => <ServerRow key={server.id} server={server} />)}
        </ul>
        <p class="panel-actions">
          <AddButton kind="new-server" label={t("servers.add")} />
          <AddButton kind="paste-servers" label={t("servers.paste")} />
        </p>
      </section>
      <section aria-label={t("extensions.title")}>
        <h2>{t("extensions.title")}</h2>
        <p class="muted">{t(extensions.length ? "extensions.about" : "extensions.none")}</p>
        <ul class="tools-rows">
          {extensions.map((extension) => <ExtensionRow key={keyOf(extension)} extension={extension} />)}
        </ul>
        <p class="panel-actions">
          <AddButton kind="new-extension" label={t("extensions.add")} />
        </p>
      </section>
      <RuleList tools={tools} rules={rules} />
    </div>
  );
}

function ServerRow({ server }: { server: Server }) {
  const { text, mood } = serverState(server);
  return (
    <Row
      view={{ kind: "server", key: server.id }}
      icon="globe"
      name={server.name}
      facts={serverFacts(server)}
      state={text}
      mood={mood}
    />
  );
}

function ExtensionRow({ extension }: { extension: Extension }) {
  const state = extensionState(extension);
  return (
    <Row
      view={{ kind: "extension", key: keyOf(extension) }}
      icon="code"
      name={extension.name}
      facts={extensionFacts(extension)}
      state={state || t("extensions.enabled")}
      mood={state ? "is-off" : "is-good"}
    />
  );
}
