// A value of any kind as text that scrolls in its own box: text as it is, anything else as JSON.

import { useLayoutEffect, useRef } from "preact/hooks";
import { showCode } from "../lib/highlight.ts";
import { t } from "../lib/i18n.ts";

const LONGEST_SHOWN = 40_000;

export function Value({ value, class: className = "value" }: { value: unknown; class?: string }) {
  const element = useRef<HTMLPreElement>(null);
  const isText = typeof value === "string";
  const text = isText ? value : JSON.stringify(value, null, 2) ?? "null";
  const left = text.length - LONGEST_SHOWN;
  const cut = left > 0 ? `${text.slice(0, LONGEST_SHOWN)}\n… ${t("calls.more-characters", { count: left })}` : text;
  useLayoutEffect(() => showCode(element.current!, cut, isText ? "" : "json"), [cut, isText]);
  return <pre class={className} tabIndex={0} dir="auto" ref={element} />;
}
