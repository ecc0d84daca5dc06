// What is shown of questions that have a view of their own: an extension that a model wants to load, and what a server asks.

import type { ComponentChildren } from "preact";
import { t } from "../lib/i18n.ts";
import { fileText, withoutTricks } from "../lib/readable.ts";
import { askedExtension, type AskedKind, askedSampling } from "../store/asked.ts";
import { Icon } from "./icon.tsx";
import { Lines } from "./lines.tsx";
import { Value } from "./value.tsx";

interface Props {
  kind: Exclude<AskedKind, "words">;
  input: Record<string, unknown>;
  /** It has been decided. */
  isPast?: boolean;
}

export function Asked({ kind, input, isPast = false }: Props) {
  if (kind === "extension") return <AskedToLoad input={input} isPast={isPast} />;
  return kind === "link" ? <AskedToOpen url={String(input.url)} /> : <AskedOfModel input={input} />;
}

function AskedToLoad({ input, isPast }: { input: Record<string, unknown>; isPast: boolean }) {
  const { description, source, permissions, rest } = askedExtension(input);
  const lines = source.replace(/\n$/, "").split("\n").length;
  return (
    <div class="asked">
      {description && <p class="muted" dir="auto">{withoutTricks(description)}</p>}
      <p class="asked-heading">
        {t(permissions.length ? (isPast ? "extensions.asked-for" : "extensions.could") : "extensions.could-nothing")}
      </p>
      {permissions.length > 0 && (
        <ul class="tools-words">
          {permissions.map((line) => <li key={line} dir="auto">{withoutTricks(line)}</li>)}
        </ul>
      )}
      <Opened title={t("extensions.source")} note={t("calls.lines", { count: lines })}>
        <Lines text={fileText(source)} label={t("extensions.source")} language="javascript" firstLine={1} />
      </Opened>
      <Opened title={t("extensions.as-written")}>
        <Value value={rest} />
      </Opened>
    </div>
  );
}

function Opened({ title, note, children }: { title: string; note?: string; children: ComponentChildren }) {
  return (
    <details class="asked-part">
      <summary>
        {title}
        {note && <span class="muted">{note}</span>}
        <Icon name="chevron" />
      </summary>
      {children}
    </details>
  );
}

/** A page that a server wants a person to open: where it leads is seen before. */
function AskedToOpen({ url }: { url: string }) {
  const shown = <bdi dir="ltr">{withoutTricks(url)}</bdi>;
  const isLink = /^https:\/\//.test(url);
  return (
    <div class="asked">
      <p>{t("servers.asks-to-open")}</p>
      <p class="asked-address">
        {isLink ? <a href={url} target="_blank" rel="noopener noreferrer nofollow">{shown}</a> : shown}
      </p>
    </div>
  );
}

function AskedOfModel({ input }: { input: Record<string, unknown> }) {
  const { system, messages, maxTokens } = askedSampling(input);
  return (
    <div class="asked">
      <p>{t("servers.asks-model")}</p>
      {system && (
        <>
          <p class="asked-heading">{t("servers.asks-model-system")}</p>
          <p class="asked-text" dir="auto">{withoutTricks(system)}</p>
        </>
      )}
      {messages.map(({ role, text }, index) => (
        <div key={index}>
          <p class="asked-heading">{withoutTricks(role)}</p>
          <p class="asked-text" dir="auto">{withoutTricks(text)}</p>
        </div>
      ))}
      {maxTokens !== null && <p class="muted">{t("servers.asks-model-tokens", { count: maxTokens })}</p>}
    </div>
  );
}
