// Why something could not be done or shown. A limit has its one form, with its countdown, wherever it is met.

import { useEffect } from "preact/hooks";
import { follow } from "../lib/store.ts";
import { useApp } from "./context.ts";
import { lazy } from "./lazy.tsx";

const LimitNote = lazy(async () => (await import("../later/views.ts")).LimitNote);

/** Nothing for an empty text. */
export function Problem({ text }: { text: string | undefined }) {
  const { limits } = useApp();
  const limit = follow(limits).of(text ?? "");
  useEffect(() => limit && limits.close(limit), [limit]); // it is shown here
  if (!text) return null;
  return limit ? <LimitNote limit={limit} /> : <p class="is-error" role="alert">{text}</p>;
}
