// Texts of the catalogue with elements in them.

import type { ComponentChild } from "preact";
import { type MessageKey, segmentsOf, t, type Values } from "../lib/i18n.ts";

/** The message `id` with an element in the place of each name: `<Text id="list.fork-of" of={<a …/>} />`. */
export function Text({ id, count, ...elements }: { id: MessageKey; count?: number } & Record<string, ComponentChild>) {
  const values: Values = count === undefined ? {} : { count };
  return (
    <>
      {segmentsOf(id, values).map(({ text, name }) => (name === "count" ? count : name ? elements[name] : text))}
    </>
  );
}

/** A text for assistive technology only. */
export function Hidden({ id }: { id: MessageKey }) {
  return <span class="visually-hidden">{t(id)}</span>;
}
