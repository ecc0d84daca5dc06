// What a person has chosen, on the server.

import type { Api, Schemas } from "./api.ts";

export type Preferences = Schemas["PreferencesOut"];
export type PreferencesChange = Partial<Schemas["PreferencesIn"]>;

export const readPreferences = (api: Pick<Api, "request">, signal?: AbortSignal): Promise<Preferences> =>
  api.request("GET", "/preferences", undefined, { signal });

export const changePreferences = (api: Pick<Api, "request">, change: PreferencesChange): Promise<Preferences> =>
  api.request("PATCH", "/preferences", change);
