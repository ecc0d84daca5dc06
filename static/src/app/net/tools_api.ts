// The extensions and the MCP servers of one conversation, and those of all of a person's conversations, on the server.

import type { Api, Schemas } from "./api.ts";

export type Server = Schemas["McpServerOut"];
export type Imported = Schemas["McpImportOut"];
export type PastedServer = Schemas["McpImportedOut"];
export type Variable = Schemas["McpVariableOut"];
export type Extension = Schemas["ExtensionOut"];
export type ExtensionDetail = Schemas["ExtensionDetailOut"];
export type ExtensionVersion = Schemas["ExtensionVersionOut"];
export type ExtensionCall = Schemas["ExtensionCallOut"];

export type Rule = Schemas["RuleOut"];

/** Whose something is: this conversation's, or all of the person's. */
export type Level = "instance" | "user";

/** Where an extension is kept that this person may change. */
export interface Kept {
  name: string;
  scope: Extension["scope"];
}

/** What an extension is loaded with or changed to. */
export interface Written {
  manifest: Record<string, unknown>;
  source: string;
  /** What is granted, within what the manifest asks for. */
  permissions: Record<string, unknown>;
}

const seg = encodeURIComponent;

export class ToolsApi {
  readonly #api: Api;
  readonly #base: string;

  /** `instanceId`: "" of a conversation that has not begun; it has what all of the person's have. */
  constructor(api: Api, instanceId: string) {
    this.#api = api;
    this.#instanceId = instanceId;
    this.#base = instanceId ? `/instances/${seg(instanceId)}` : "";
  }

  readonly #instanceId: string;

  #at = (level: Level): string => (level === "instance" ? this.#base : "");

  // --- rules about calls --------------------------------------------------------------------------------------------

  /** Those that count in the conversation, in the order in which they do; of none all of the person's. */
  rules = (signal?: AbortSignal): Promise<Schemas["RulesOut"]> =>
    this.#api.request("GET", `/rules?instance_id=${seg(this.#instanceId)}`, undefined, { signal });

  addRule = (level: Level, rule: Schemas["RuleIn"]): Promise<Rule> =>
    this.#api.request("POST", "/rules", { ...rule, instance_id: level === "instance" ? this.#instanceId : "" });

  changeRule = (id: string, rule: Schemas["RuleIn"]): Promise<Rule> =>
    this.#api.request("PUT", `/rules/${seg(id)}`, rule);

  removeRule = (id: string): Promise<unknown> => this.#api.request("DELETE", `/rules/${seg(id)}`);

  /** Begin or end plan mode. */
  plan = (isOn: boolean): Promise<unknown> => this.#api.request("PUT", `${this.#base}/plan-mode`, { is_on: isOn });

  // --- servers ------------------------------------------------------------------------------------------------------

  servers = (signal?: AbortSignal): Promise<Server[]> =>
    this.#api.request("GET", `${this.#base}/mcp-servers`, undefined, { signal });

  addServer = (level: Level, server: Schemas["McpServerIn"]): Promise<Server> =>
    this.#api.request("POST", `${this.#at(level)}/mcp-servers`, server);

  /** The servers of a pasted configuration: what would be, or what was done once it is confirmed. */
  importServers = (level: Level, pasted: Schemas["McpImportIn"]): Promise<Imported> =>
    this.#api.request("POST", `${this.#at(level)}/mcp-servers/import`, pasted);

  changeServer = (id: string, change: Partial<Schemas["McpServerPatch"]>): Promise<Server> =>
    this.#api.request("PATCH", `${this.#base}/mcp-servers/${seg(id)}`, change);

  connectServer = (id: string): Promise<Server> =>
    this.#api.request("POST", `${this.#base}/mcp-servers/${seg(id)}/connect`);

  removeServer = (id: string): Promise<null> => this.#api.request("DELETE", `${this.#base}/mcp-servers/${seg(id)}`);

  /** The sign-in is the person's own, at whichever server. */
  signOut = (id: string): Promise<null> => this.#api.request("DELETE", `/mcp-servers/${seg(id)}/sign-in`);

  // --- extensions ---------------------------------------------------------------------------------------------------

  extensions = async (signal?: AbortSignal): Promise<Extension[]> =>
    (await this.#api.request<Schemas["ExtensionsOut"]>("GET", `${this.#base}/extensions`, undefined, { signal })).items;

  /** An extension with its source. Of the person's own ones. */
  extension = (kept: Kept, signal?: AbortSignal): Promise<ExtensionDetail> =>
    this.#api.request("GET", this.#of(kept), undefined, { signal });

  loadExtension = (level: Level, written: Written): Promise<ExtensionDetail> =>
    this.#api.request("POST", `${this.#at(level)}/extensions`, written);

  changeExtension = (kept: Kept, change: Partial<Schemas["ExtensionPatch"]>): Promise<ExtensionDetail> =>
    this.#api.request("PATCH", this.#of(kept), change);

  unloadExtension = (kept: Kept): Promise<null> => this.#api.request("DELETE", this.#of(kept));

  versions = async (kept: Kept): Promise<ExtensionVersion[]> =>
    (await this.#api.request<Schemas["ExtensionVersionsOut"]>("GET", `${this.#of(kept)}/versions`)).items;

  /** What it called; `before` goes on with older ones. */
  calls = (kept: Kept, before: number | null): Promise<Schemas["ExtensionCallsOut"]> =>
    this.#api.request("GET", `${this.#of(kept)}/calls${before === null ? "" : `?before=${before}`}`);

  #of = ({ name, scope }: Kept): string =>
    `${this.#at(scope === "user" ? "user" : "instance")}/extensions/${seg(name)}`;
}
