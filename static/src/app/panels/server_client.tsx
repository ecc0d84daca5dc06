// The client ID and secret with which people sign in at a server, where this site can't register itself there. The secret is
// sent once and never shown again.

import { useId, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { Server } from "../net/tools_api.ts";
import { Part } from "./tools_pieces.tsx";

export interface Client {
  client_id: string;
  client_secret: string;
}

interface FieldsProps {
  client: Client;
  set: (client: Client) => void;
  /** The address that people register elsewhere. */
  redirect: string;
}

export function ClientFields({ client, set, redirect }: FieldsProps) {
  const id = useId();
  return (
    <>
      <p class="muted">{t("servers.client-about")}</p>
      <p class="muted">
        {t("servers.client-redirect")} <code class="tools-address" dir="ltr">{redirect}</code>
      </p>
      <label for={`${id}-id`} class="field-label">{t("servers.client-id")}</label>
      <input
        id={`${id}-id`}
        class="field"
        type="text"
        maxLength={2_000}
        dir="ltr"
        autocomplete="off"
        spellcheck={false}
        value={client.client_id}
        onInput={(event) => set({ ...client, client_id: event.currentTarget.value })}
      />
      <label for={`${id}-secret`} class="field-label">{t("servers.client-secret")}</label>
      <input
        id={`${id}-secret`}
        class="field"
        type="password"
        maxLength={2_000}
        autocomplete="new-password"
        value={client.client_secret}
        onInput={(event) => set({ ...client, client_secret: event.currentTarget.value })}
      />
    </>
  );
}

interface Props {
  server: Server;
  isBusy: boolean;
  change: (wanted: Client) => Promise<boolean>;
}

export function ServerClient({ server, isBusy, change }: Props) {
  return (
    <Part title={t("servers.client")} note={server.client_id}>
      {() => <ClientForm server={server} isBusy={isBusy} change={change} />}
    </Part>
  );
}

function ClientForm({ server, isBusy, change }: Props) {
  const [client, setClient] = useState<Client>({ client_id: server.client_id, client_secret: "" });
  const [isSaved, setSaved] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const wanted = { client_id: client.client_id.trim(), client_secret: client.client_secret.trim() };
    const isDone = await change(wanted);
    setSaved(isDone);
    if (isDone) setClient({ ...wanted, client_secret: "" });
  };
  const write = (next: Client) => {
    setSaved(false);
    setClient(next);
  };
  return (
    <form class="tools-form" onSubmit={submit}>
      <ClientFields client={client} set={write} redirect={server.redirect_url} />
      <p class="panel-actions">
        <button type="submit" class="button" disabled={isBusy}>{t("servers.client-save")}</button>
        <span class="muted" role="status">{isSaved ? t("servers.client-saved") : ""}</span>
      </p>
    </form>
  );
}
