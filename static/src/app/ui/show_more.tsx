// The button that reads on at the end of a list. The first new row gets the focus: the button may be gone.

import type { RefObject } from "preact";
import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { useApp } from "./context.ts";

interface Props {
  id: string;
  label: string;
  isShown: boolean;
  load: () => Promise<unknown>;
  /** What holds the rows: their first link is where the focus goes. */
  rows: RefObject<HTMLElement | null>;
}

export function ShowMore({ id, label, isShown, load, rows }: Props) {
  const { notices } = useApp();
  const [isLoading, setLoading] = useState(false);
  if (!isShown) return null;
  const links = () => [...(rows.current?.querySelectorAll<HTMLElement>("a, [data-focus]") ?? [])];
  const more = async () => {
    if (isLoading) return;
    const before = new Set(links());
    setLoading(true);
    try {
      await load();
    } catch (error) {
      notices.fail(error);
    }
    setLoading(false);
    requestAnimationFrame(() => links().find((link) => !before.has(link))?.focus());
  };
  return (
    <button id={id} type="button" class="button" aria-disabled={isLoading} onClick={more}>
      {isLoading ? t("common.loading") : label}
    </button>
  );
}
