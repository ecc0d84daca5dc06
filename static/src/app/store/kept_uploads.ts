// A message on its way may name files that are kept in this browser: they are uploaded before it is sent, once.

import { t } from "../lib/i18n.ts";
import { forgetFile, isKept, keptFile } from "../lib/kept_files.ts";
import { type Api, ApiError } from "../net/api.ts";
import type { KeptEntry } from "./outbox.ts";
import type { FilePart, Json, JsonObject, Part, StoredFile } from "./types.ts";

type Content = Pick<KeptEntry, "body" | "shown">;

const keptIn = (parts: readonly Part[]): FilePart[] =>
  parts.filter((part): part is FilePart => part.type === "file" && isKept(part.url));

/**
 * Upload what is kept, and give the message with the addresses of the server. `rewrite` writes each upload down, so that one
 * that is tried again does not upload it twice. Throws an `ApiError`.
 */
export async function uploadKept(
  api: Api,
  content: Content,
  rewrite: (content: Content) => void,
  signal?: AbortSignal,
): Promise<JsonObject> {
  let { body, shown } = content;
  for (const part of keptIn(shown?.parts ?? [])) {
    const file = await keptFile(part.url).catch(() => null);
    if (!file) throw new ApiError("refused", t("composer.file-gone", { name: part.filename ?? "" }));
    const stored = await api.upload(file, { signal }) as StoredFile;
    const uploaded = { type: "file" as const, mediaType: stored.media_type, url: stored.url, filename: stored.name };
    const parts = shown!.parts.map((other) => (other.type === "file" && other.url === part.url ? uploaded : other));
    shown = { ...shown!, parts };
    body = { ...body, message: { ...body.message as JsonObject, parts: parts as unknown as Json } };
    rewrite({ body, shown });
    await forgetFile(part.url).catch(() => {}); // it is forgotten later
  }
  return body;
}
