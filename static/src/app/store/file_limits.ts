// Whether a file can be attached, as far as that is seen before its bytes are sent: by its size, and by a type that browsers know
// for certain. The server looks at the bytes and decides. Pure.

import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { FileLimits } from "./boot.ts";

// Families that no text is of: a source file may have any type, and is a text all the same.
const CERTAIN: readonly (readonly [RegExp, Parameters<typeof t>[0]])[] = [
  [/^video\//, "composer.kind-video"],
  [/^audio\//, "composer.kind-audio"],
  [/^font\//, "composer.kind-font"],
  [/^image\//, "composer.kind-picture"],
  [/^application\/(zip|x-zip-compressed|gzip|x-gzip|x-tar|x-7z-compressed|vnd\.rar|x-rar.*)$/, "composer.kind-archive"],
  [
    /^application\/(x-msdownload|x-msdos-program|x-ms-installer|x-apple-diskimage|vnd\.android.*)$/,
    "composer.kind-program",
  ],
];

/** Why a file cannot be attached, in words; "" where it may be. */
export function fileProblem({ name, size, type }: Pick<File, "name" | "size" | "type">, limits: FileLimits): string {
  if (size === 0) return t("composer.file-empty", { name });
  if (size > limits.max_bytes) {
    return t("composer.file-too-large", { name, size: fileSize(size), limit: fileSize(limits.max_bytes) });
  }
  if (limits.types.includes(type)) return "";
  const kind = CERTAIN.find(([pattern]) => pattern.test(type))?.[1];
  return kind ? t("composer.file-kind", { name, kind: t(kind) }) : "";
}
