// A person's projects on the server, and the files that the conversations of one have in common.

import type { Api, Schemas } from "./api.ts";

export type Project = Schemas["ProjectOut"];
export type ProjectFiles = Schemas["ProjectFilesOut"];
export type ProjectFile = Schemas["WorkspaceEntryOut"];
export type Colour = Schemas["ProjectColour"];
/** What a person writes of a project. */
export type ProjectValues = Pick<Project, "name" | "colour" | "instructions" | "agent">;

const at = (id: string): string => `/projects/${encodeURIComponent(id)}`;
const content = (id: string, path: string): string => `${at(id)}/files/content?${new URLSearchParams({ path })}`;

export const addProject = (api: Api, values: ProjectValues): Promise<Project> =>
  api.request("POST", "/projects", values);

export const changeProject = (api: Api, id: string, values: Partial<ProjectValues>): Promise<Project> =>
  api.request("PATCH", at(id), values);

/** Its conversations stay. */
export const removeProject = (api: Api, id: string): Promise<null> => api.request("DELETE", at(id));

export const readFiles = (api: Api, id: string, signal?: AbortSignal): Promise<ProjectFiles> =>
  api.request("GET", `${at(id)}/files`, undefined, { signal });

export const putFile = (api: Api, id: string, file: File): Promise<ProjectFile> =>
  api.transfer("PUT", content(id, file.name), file, { headers: { "content-type": "application/octet-stream" } });

export const removeFile = (api: Api, id: string, path: string): Promise<null> =>
  api.request("DELETE", `${at(id)}/files?${new URLSearchParams({ path })}`);

export const fileAddress = (api: Api, id: string, path: string): string =>
  `${api.base}${content(id, path)}&download=true`;
