// The section "Tools and servers": the servers and the extensions of all of a person's conversations.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { PlacedExtension, PlacedServer } from "../net/account_api.ts";
import { ToolsApi } from "../net/tools_api.ts";
import type { Reading } from "../ui/reading.ts";
import { isOnItsWay, stateOf } from "../store/server_facts.ts";
import { useApp } from "../ui/context.ts";
import { FollowLink } from "../ui/follow_link.tsx";
import { Problem } from "../ui/problem.tsx";
import { AccountRow, Facts, isSure, useAccountApi, useFacts, useVerb } from "./account_pieces.tsx";

const LOOK_MS = 1_000;

export function ToolsSection() {
  const app = useApp();
  return (
    <div class="account-section">
      <p class="muted">{t("account.tools-about")}</p>
      <p class="panel-actions">
        <FollowLink
          class="button"
          href={app.router.address({ page: "settings", section: "rules" })}
          go={() => app.place.showSettings("rules")}
        >
          {t("account.tools-rules")}
        </FollowLink>
      </p>
      <Servers />
      <Extensions />
    </div>
  );
}

/** Where something is: in a conversation, to which the title leads, or everywhere. */
function Place({ id, title, ofSite = false }: { id: string; title: string; ofSite?: boolean }) {
  const app = useApp();
  if (!id) return <p class="muted">{t(ofSite ? "account.of-site" : "account.in-all")}</p>;
  return (
    <p>
      <FollowLink
        href={app.router.address({ page: "conversation", id, place: null })}
        go={() => app.place.open(id, { place: null, isPushed: true })}
      >
        {t("account.in-one", { title: withoutTricks(title) || t("account.untitled") })}
      </FollowLink>
    </p>
  );
}

function Servers() {
  const api = useAccountApi();
  const reading = useFacts(() => api.servers());
  useEffect(() => {
    if (reading.value?.some(({ server }) => isOnItsWay(server))) reading.watch(LOOK_MS);
  }, [reading.value]);
  return (
    <section aria-labelledby="servers-title">
      <h3 id="servers-title">{t("account.servers")}</h3>
      <Facts reading={reading}>
        {(placed) =>
          placed.length
            ? (
              <ul class="account-rows">
                {placed.map((each) => <ServerRow key={each.server.id} placed={each} reading={reading} />)}
              </ul>
            )
            : <p>{t("account.servers-none")}</p>}
      </Facts>
    </section>
  );
}

function ServerRow({ placed, reading }: { placed: PlacedServer; reading: Reading<PlacedServer[]> }) {
  const app = useApp();
  const { server, instance_id, title } = placed;
  const [api] = useState(() => new ToolsApi(app.api, instance_id));
  const { problem, isBusy, attempt } = useVerb(reading);
  const name = withoutTricks(server.name);
  const { text, mood } = stateOf(server);
  const remove = async () => {
    const question = {
      title: t("servers.remove-title", { name }),
      text: t("servers.remove-text"),
      confirm: t("servers.remove"),
    };
    if (await isSure(app, question)) await attempt(() => api.removeServer(server.id));
  };
  const button = (verb: string, run: () => unknown) => (
    <button
      type="button"
      class="button"
      disabled={isBusy}
      aria-label={t("account.server-verb", { verb, name })}
      onClick={() => void run()}
    >
      {verb}
    </button>
  );
  return (
    <AccountRow
      icon="globe"
      name={name}
      verbs={
        <>
          {server.enabled && server.auth_url && (
            <a
              class="button is-primary"
              href={server.auth_url}
              target="_blank"
              rel="noopener"
              aria-label={t("account.server-verb", { verb: t("servers.sign-in"), name })}
            >
              {t("servers.sign-in")}
            </a>
          )}
          {server.enabled && !server.auth_url && !isOnItsWay(server) &&
            button(t("servers.connect"), () => attempt(() => api.connectServer(server.id)))}
          {server.signed_in && button(t("servers.sign-out"), () => attempt(() => api.signOut(server.id)))}
          {server.can_change && button(t("servers.remove"), remove)}
        </>
      }
    >
      <p>
        <span class={`tools-state ${mood}`} role="status">{text}</span>
      </p>
      <p class="muted">
        <bdi>{withoutTricks(server.url)}</bdi>
      </p>
      <Place id={instance_id} title={title} ofSite={server.scope === "site"} />
      {server.error && <p class="is-error" dir="auto">{withoutTricks(server.error)}</p>}
      <Problem text={problem} />
    </AccountRow>
  );
}

function Extensions() {
  const api = useAccountApi();
  const reading = useFacts(() => api.extensions());
  return (
    <section aria-labelledby="extensions-title">
      <h3 id="extensions-title">{t("account.extensions")}</h3>
      <Facts reading={reading}>
        {(placed) =>
          placed.length
            ? (
              <ul class="account-rows">
                {placed.map((each) => (
                  <ExtensionRow key={`${each.instance_id} ${each.name}`} extension={each} reading={reading} />
                ))}
              </ul>
            )
            : <p>{t("account.extensions-none")}</p>}
      </Facts>
    </section>
  );
}

function ExtensionRow({ extension, reading }: { extension: PlacedExtension; reading: Reading<PlacedExtension[]> }) {
  const app = useApp();
  const { name, scope, instance_id, title, enabled, is_banned } = extension;
  const [api] = useState(() => new ToolsApi(app.api, instance_id));
  const { problem, isBusy, attempt } = useVerb(reading);
  const remove = async () => {
    const question = {
      title: t("account.extension-remove-title", { name }),
      text: t("account.extension-remove-about"),
      confirm: t("account.extension-remove"),
    };
    if (await isSure(app, question)) await attempt(() => api.unloadExtension({ name, scope }));
  };
  const state = is_banned ? "account.extension-banned" : enabled ? "account.extension-on" : "account.extension-off";
  return (
    <AccountRow
      icon="code"
      name={withoutTricks(name)}
      verbs={
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={t("account.extension-remove-named", { name })}
          onClick={() => void remove()}
        >
          {t("account.extension-remove")}
        </button>
      }
    >
      {extension.description && <p dir="auto">{withoutTricks(extension.description)}</p>}
      <p class="muted">{t(state)}</p>
      <Place id={instance_id} title={title} />
      <Problem text={problem} />
    </AccountRow>
  );
}
