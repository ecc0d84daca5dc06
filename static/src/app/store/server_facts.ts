// MCP servers in words. Pure.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { Server } from "../net/tools_api.ts";

/** How a server stands, as its mark shows it. */
export type ServerMood = "is-good" | "is-busy" | "is-asking" | "is-bad" | "is-off";

export interface ServerState {
  text: string;
  mood: ServerMood;
}

const WORKING: { readonly [state: string]: MessageKey } = {
  connecting: "servers.connecting",
  connected: "servers.reading",
  discovering: "servers.reading",
};

export function stateOf(server: Server): ServerState {
  if (!server.enabled) return { text: t("servers.disabled"), mood: "is-off" };
  if (server.state === "authenticating") return { text: t("servers.sign-in-needed"), mood: "is-asking" };
  if (server.state === "failed") return { text: t("servers.failed"), mood: "is-bad" };
  if (server.state in WORKING) return { text: t(WORKING[server.state]), mood: "is-busy" };
  if (server.state === "not-connected") return { text: t("servers.not-connected"), mood: "is-off" };
  return toReview(server).length
    ? { text: t("servers.to-review"), mood: "is-asking" }
    : { text: t("servers.ready"), mood: "is-good" };
}

/** Whether it will be in another state soon, by itself. */
export const isOnItsWay = (server: Server): boolean => server.enabled && server.state in WORKING;

/** Tools that are not as a person accepted them. Those of a trusted server need no acceptance. */
export const toReview = (server: Server): Server["tools"] =>
  server.trusted ? [] : server.tools.filter((tool) => !tool.accepted);

/** "12 tools · for all your conversations". */
export function factsOf(server: Server): string {
  const count = server.tools.length;
  return [count > 0 && t("servers.tools-count", { count }), t(SCOPES[server.scope])].filter(Boolean).join(" · ");
}

export const SCOPES = {
  instance: "servers.scope-instance",
  user: "servers.scope-user",
  site: "servers.scope-site",
} as const satisfies Record<Server["scope"], MessageKey>;

/** What else a server offers. */
export function otherwise(server: Server): string {
  const { prompts, resources } = server;
  return [
    prompts.length > 0 && t("servers.prompts", { count: prompts.length }),
    resources.length > 0 && t("servers.resources", { count: resources.length }),
  ].filter(Boolean).join(", ");
}
