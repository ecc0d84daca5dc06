// A person's account on the server: tokens, programs, and the browsers that are signed in.

import type { Api, Schemas } from "./api.ts";

export type Token = Schemas["TokenOut"];
export type NewToken = Schemas["NewTokenOut"];
export type WantedToken = Schemas["TokenIn"];
export type Program = Schemas["ProgramOut"];
export type Browser = Schemas["BrowserOut"];

export type Account = Schemas["AccountOut"];
export type Provider = Schemas["ProviderOut"];
export type ProviderKey = Schemas["ProviderKeyOut"];
export type PlacedServer = Schemas["PlacedServerOut"];
export type PlacedExtension = Schemas["PlacedExtensionOut"];
export type DataExport = Schemas["DataExportOut"];

const seg = encodeURIComponent;

export class AccountApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  tokens = (): Promise<Token[]> => this.#api.request("GET", "/tokens");
  makeToken = (wanted: WantedToken): Promise<NewToken> => this.#api.request("POST", "/tokens", wanted);
  revokeToken = (id: number): Promise<null> => this.#api.request("DELETE", `/tokens/${id}`);

  programs = (): Promise<Program[]> => this.#api.request("GET", "/programs");
  endProgram = (id: string): Promise<null> => this.#api.request("DELETE", `/programs/${seg(id)}`);

  browsers = (): Promise<Schemas["BrowsersOut"]> => this.#api.request("GET", "/account/browsers");
  signOut = (id: string): Promise<null> => this.#api.request("DELETE", `/account/browsers/${seg(id)}`);
  signOutOthers = (): Promise<Schemas["SignedOut"]> => this.#api.request("DELETE", "/account/browsers");

  account = (): Promise<Account> => this.#api.request("GET", "/account");
  deleteAccount = (password: string): Promise<null> => this.#api.request("POST", "/account/delete", { password });

  providers = (): Promise<Provider[]> => this.#api.request("GET", "/provider-keys");
  storeKey = (provider: string, key: string): Promise<ProviderKey> =>
    this.#api.request("PUT", `/provider-keys/${seg(provider)}`, { key });
  removeKey = (provider: string): Promise<null> => this.#api.request("DELETE", `/provider-keys/${seg(provider)}`);
  tryKey = (provider: string): Promise<ProviderKey> => this.#api.request("POST", `/provider-keys/${seg(provider)}/try`);

  servers = (): Promise<PlacedServer[]> => this.#api.request("GET", "/account/servers");
  extensions = (): Promise<PlacedExtension[]> => this.#api.request("GET", "/account/extensions");

  exports = (): Promise<Schemas["DataExportsOut"]> => this.#api.request("GET", "/account/exports");
  startExport = (): Promise<DataExport> => this.#api.request("POST", "/account/exports");
  removeExport = (id: string): Promise<null> => this.#api.request("DELETE", `/account/exports/${seg(id)}`);
  exportAddress = (id: string): string => `${this.#api.base}/account/exports/${seg(id)}/file`;
}
