// A new MCP server: its name, its address, and what it wants in headers. These are secrets: they are sent once and
// never shown again.

import { useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { Level } from "../net/tools_api.ts";
import { toolsPlace } from "../store/tools_place.ts";
import { Icon, IconButton } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { type Client, ClientFields } from "./server_client.tsx";
import { Item, LevelChoice, Part, useAttempt, useDraft } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";

const FORM = "new-server";
const SCHEME = "https://";
const REDIRECT = new URL("/mcp/oauth/callback", location.href).href;

interface Header {
  id: number;
  name: string;
  value: string;
}

export function ServerForm({ tools, close }: { tools: Tools; close: () => void }) {
  const id = useId();
  const { api, instanceId } = tools;
  const [name, setName] = useDraft(FORM, "name");
  const [url, setUrl] = useDraft(FORM, "url");
  const [level, setLevel] = useState<Level>(instanceId ? "instance" : "user");
  const [headers, setHeaders] = useState<Header[]>([]);
  const [client, setClient] = useState<Client>({ client_id: "", client_secret: "" });
  const { problem, isBusy, attempt } = useAttempt(tools);
  const submit = async (event: Event) => {
    event.preventDefault();
    const given = headers.filter((header) => header.name.trim());
    const sent = {
      name: name.trim(),
      url: url.trim(),
      headers: Object.fromEntries(given.map((header) => [header.name.trim(), header.value])),
      client_id: client.client_id.trim(),
      client_secret: client.client_secret.trim(),
    };
    let made = "";
    const isAdded = await attempt(async () => {
      made = (await api.addServer(level, sent)).id;
    });
    if (!isAdded) return;
    toolsPlace.forget(FORM);
    toolsPlace.open({ kind: "server", key: made });
  };
  return (
    <Item title={t("servers.add")} close={close}>
      <form class="tools-form" onSubmit={submit}>
        <p class="muted">{t("servers.add-about")}</p>
        <label for={`${id}-name`} class="field-label">{t("servers.name")}</label>
        <input
          id={`${id}-name`}
          class="field"
          type="text"
          required
          maxLength={100}
          dir="auto"
          autocomplete="off"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <label for={`${id}-url`} class="field-label">{t("servers.url")}</label>
        <input
          id={`${id}-url`}
          class="field"
          type="url"
          required
          maxLength={4_000}
          dir="ltr"
          autocomplete="off"
          spellcheck={false}
          placeholder={SCHEME}
          value={url}
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
        <LevelChoice form={id} instanceId={instanceId} level={level} choose={setLevel} />
        <Headers headers={headers} set={setHeaders} />
        <Part title={t("servers.client")}>
          {() => <ClientFields client={client} set={setClient} redirect={REDIRECT} />}
        </Part>
        <Problem text={problem} />
        <p class="panel-actions">
          <button type="submit" class="button is-primary" disabled={isBusy}>{t("servers.add-confirm")}</button>
          <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
        </p>
      </form>
    </Item>
  );
}

function Headers({ headers, set }: { headers: Header[]; set: (headers: Header[]) => void }) {
  const count = useRef(0);
  const add = useRef<HTMLButtonElement>(null);
  const rows = useRef<HTMLDivElement>(null);
  const more = () => {
    set([...headers, { id: ++count.current, name: "", value: "" }]);
    setTimeout(() => [...rows.current!.querySelectorAll<HTMLElement>("input[type=text]")].at(-1)?.focus());
  };
  const write = (changed: Header) => set(headers.map((header) => (header.id === changed.id ? changed : header)));
  const remove = (gone: Header) => {
    set(headers.filter((header) => header !== gone));
    add.current?.focus();
  };
  return (
    <div class="tools-headers" ref={rows}>
      <p class="field-label">{t("servers.headers")}</p>
      {headers.map((header) => (
        <div class="tools-header" key={header.id}>
          <input
            class="field"
            type="text"
            aria-label={t("servers.header-name")}
            placeholder={t("servers.header-name")}
            dir="ltr"
            autocomplete="off"
            spellcheck={false}
            value={header.name}
            onInput={(event) => write({ ...header, name: event.currentTarget.value })}
          />
          <input
            class="field"
            type="password"
            aria-label={t("servers.header-value")}
            placeholder={t("servers.header-value")}
            autocomplete="new-password"
            value={header.value}
            onInput={(event) => write({ ...header, value: event.currentTarget.value })}
          />
          <IconButton icon="close" label={t("servers.header-remove")} onClick={() => remove(header)} />
        </div>
      ))}
      {headers.length > 0 && <p class="muted">{t("servers.headers-secret")}</p>}
      <button
        type="button"
        class="quiet"
        ref={add}
        onClick={more}
      >
        <Icon name="plus" />
        {t("servers.header-add")}
      </button>
    </div>
  );
}
