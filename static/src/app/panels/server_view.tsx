// One MCP server: how it stands, what a person can do about it, and the tools that it offers. Its texts are a stranger's.

import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Server } from "../net/tools_api.ts";
import { isOnItsWay, otherwise, SCOPES, stateOf, toReview } from "../store/server_facts.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { Value } from "../ui/value.tsx";
import { ServerClient } from "./server_client.tsx";
import { Item, Part, useAttempt } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";

interface Props {
  tools: Tools;
  server: Server;
  close: () => void;
}

export function ServerView({ tools, server, close }: Props) {
  const { api } = tools;
  const attempt = useAttempt(tools);
  const change = (wanted: Parameters<typeof api.changeServer>[1]) =>
    attempt.attempt(() => api.changeServer(server.id, wanted));
  const { text, mood } = stateOf(server);
  const others = otherwise(server);
  return (
    <Item title={server.name} close={close}>
      <p>
        <span class={`tools-state ${mood}`} role="status">{text}</span>
      </p>
      {server.error && <p class="is-error" dir="auto">{withoutTricks(server.error)}</p>}
      <p class="muted">
        <bdi>{withoutTricks(server.url)}</bdi> · {t(SCOPES[server.scope])}
      </p>
      <Problem text={attempt.problem} />
      <Review server={server} isBusy={attempt.isBusy} accept={() => change({ accept: server.fingerprint })} />
      <Verbs tools={tools} server={server} attempt={attempt} close={close} />
      {server.instructions && (
        <Part title={t("servers.instructions")}>
          {() => <p class="block-text" dir="auto">{withoutTricks(server.instructions!)}</p>}
        </Part>
      )}
      <ToolList server={server} />
      <Skipped server={server} />
      {server.can_change && server.transport === "http" && (
        <ServerClient server={server} isBusy={attempt.isBusy} change={change} />
      )}
      {others && <p class="muted">{t("servers.also", { what: others })}</p>}
      {server.can_change && <Trust server={server} isBusy={attempt.isBusy} change={change} />}
    </Item>
  );
}

/** Tools that came or changed after a person looked: models do not get them until a person has. */
function Review({ server, isBusy, accept }: { server: Server; isBusy: boolean; accept: () => void }) {
  const waiting = toReview(server);
  const isUnread = !server.reviewed && server.tools.length > 0;
  if (!server.enabled || !(waiting.length || isUnread)) return null;
  return (
    <div class="tools-notice">
      <p>{isUnread ? t("servers.unread") : t("servers.review", { count: waiting.length })}</p>
      {server.can_change && (
        <p class="panel-actions">
          <button type="button" class="button is-primary" disabled={isBusy} onClick={accept}>
            {t("servers.accept")}
          </button>
        </p>
      )}
    </div>
  );
}

interface VerbsProps extends Props {
  attempt: ReturnType<typeof useAttempt>;
}

function Verbs({ tools: { api }, server, attempt: { attempt, isBusy }, close }: VerbsProps) {
  const { dialogs } = useApp();
  const remove = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("servers.remove-title", { name: server.name }),
      text: t("servers.remove-text"),
      confirm: t("servers.remove"),
      isDanger: true,
    });
    if (isSure && await attempt(() => api.removeServer(server.id))) close();
  };
  const button = (label: string, verb: () => Promise<unknown>) => (
    <button
      type="button"
      class="button"
      disabled={isBusy}
      onClick={() => attempt(verb)}
    >
      {label}
    </button>
  );
  return (
    <p class="panel-actions">
      {server.enabled && server.auth_url && (
        <a class="button is-primary" href={server.auth_url} target="_blank" rel="noopener">{t("servers.sign-in")}</a>
      )}
      {server.enabled && !server.auth_url && !isOnItsWay(server) &&
        button(t("servers.connect"), () => api.connectServer(server.id))}
      {server.can_change &&
        button(
          t(server.enabled ? "servers.disable" : "servers.enable"),
          () => api.changeServer(server.id, { enabled: !server.enabled }),
        )}
      {server.signed_in && button(t("servers.sign-out"), () => api.signOut(server.id))}
      {server.can_change && (
        <button type="button" class="button" disabled={isBusy} onClick={remove}>{t("servers.remove")}</button>
      )}
    </p>
  );
}

function ToolList({ server }: { server: Server }) {
  const waiting = new Set(toReview(server));
  if (!server.tools.length) return null;
  const tools = [...waiting, ...server.tools.filter((tool) => !waiting.has(tool))];
  return (
    <>
      <h3 class="tools-heading">{t("servers.tools")}</h3>
      <ul class="tools-tools">
        {tools.map((tool) => (
          <li key={tool.name}>
            <details class="context-piece">
              <summary>
                <span class="context-label">
                  <bdi>{withoutTricks(tool.title || tool.name)}</bdi>
                </span>
                {waiting.has(tool) && <span class="tools-state is-asking">{t("servers.new")}</span>}
                {tool.read_only && (
                  <span class="context-tokens">
                    {t(server.trusted ? "servers.read-only" : "servers.says-read-only")}
                  </span>
                )}
                <Icon name="chevron" />
              </summary>
              <div class="tools-part">
                <p class="block-text" dir="auto">{withoutTricks(tool.description) || t("servers.no-description")}</p>
                <p class="muted">
                  <code>{withoutTricks(tool.name)}</code>
                </p>
                <Value value={tool.input_schema} />
              </div>
            </details>
          </li>
        ))}
      </ul>
    </>
  );
}

function Skipped({ server: { skipped } }: { server: Server }) {
  if (!skipped.length) return null;
  return (
    <div class="tools-notice">
      <p>{t("servers.skipped", { count: skipped.length })}</p>
      <ul class="tools-skipped">
        {skipped.map(({ name, reason }, index) => (
          <li key={index}>
            <code>{withoutTricks(name)}</code> <span class="muted" dir="auto">{withoutTricks(reason)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface TrustProps {
  server: Server;
  isBusy: boolean;
  change: (wanted: { trusted: boolean }) => Promise<boolean>;
}

function Trust({ server, isBusy, change }: TrustProps) {
  const { dialogs } = useApp();
  const trust = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("servers.trust-title", { name: server.name }),
      text: t("servers.trust-text"),
      confirm: t("servers.trust"),
      isDanger: true,
    });
    if (isSure) await change({ trusted: true });
  };
  return (
    <section class="tools-trust" aria-label={t("servers.trust-label")}>
      <p class="muted">{t(server.trusted ? "servers.trusted" : "servers.not-trusted")}</p>
      <p class="panel-actions">
        <button
          type="button"
          class="button"
          disabled={isBusy}
          onClick={() => (server.trusted ? change({ trusted: false }) : trust())}
        >
          {t(server.trusted ? "servers.distrust" : "servers.trust-more")}
        </button>
      </p>
    </section>
  );
}
