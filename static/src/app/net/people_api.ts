// The people in a conversation, on the server.

import type { Role } from "./types.ts";
import type { Api, Schemas } from "./api.ts";

export type People = Schemas["PeopleOut"];
export type Person = Schemas["PersonOut"];
export type Invitation = Schemas["InvitationOut"];
export type GivenRole = Exclude<Role, "owner">;

const seg = encodeURIComponent;

export class PeopleApi {
  readonly #api: Api;
  readonly #at: string;

  constructor(api: Api, instanceId: string) {
    this.#api = api;
    this.#at = `/instances/${seg(instanceId)}`;
  }

  people = (): Promise<People> => this.#api.request("GET", `${this.#at}/members`);

  add = (name: string, role: GivenRole): Promise<Schemas["MemberOut"]> =>
    this.#api.request("POST", `${this.#at}/members`, { name, role });

  setRole = (id: string, role: GivenRole): Promise<Schemas["MemberOut"]> =>
    this.#api.request("PATCH", `${this.#at}/members/${seg(id)}`, { role });

  remove = (id: string): Promise<void> => this.#api.request("DELETE", `${this.#at}/members/${seg(id)}`);

  leave = (): Promise<void> => this.#api.request("POST", `${this.#at}/leave`);

  invitations = (): Promise<Invitation[]> => this.#api.request("GET", `${this.#at}/invitations`);

  invite = (role: GivenRole): Promise<Schemas["NewInvitationOut"]> =>
    this.#api.request("POST", `${this.#at}/invitations`, { role });

  withdraw = (id: string): Promise<void> => this.#api.request("DELETE", `${this.#at}/invitations/${seg(id)}`);
}
