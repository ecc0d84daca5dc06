// A person's saved prompts, on the server.

import type { Api, Schemas } from "./api.ts";

export type SavedPrompt = Schemas["PromptOut"];

const seg = encodeURIComponent;

export const readPrompts = (api: Api, signal?: AbortSignal): Promise<SavedPrompt[]> =>
  api.request("GET", "/prompts", undefined, { signal });

export const addPrompt = (api: Api, prompt: Schemas["PromptIn"]): Promise<SavedPrompt> =>
  api.request("POST", "/prompts", prompt);

export const changePrompt = (api: Api, id: string, change: Schemas["PromptPatch"]): Promise<SavedPrompt> =>
  api.request("PATCH", `/prompts/${seg(id)}`, change);

export const removePrompt = (api: Api, id: string): Promise<null> => api.request("DELETE", `/prompts/${seg(id)}`);
