// A person's account on the server: tokens, programs, and the browsers that are signed in.

import type { Api, Schemas } from "./api.ts";

export type Token = Schemas["TokenOut"];
export type NewToken = Schemas["NewTokenOut"];
export type WantedToken = Schemas["TokenIn"];
export type Program = Schemas["ProgramOut"];
export type Browser = Schemas["BrowserOut"];

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
}
