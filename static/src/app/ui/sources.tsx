// The numbered sources of one message.

import type { Source } from "../lib/citations.ts";
import { t } from "../lib/i18n.ts";

export function Sources({ sources }: { sources: readonly Source[] }) {
  return (
    <ol class="sources" aria-label={t("message.sources")}>
      {sources.map((source) => (
        <li key={source.number}>
          <SourceText source={source} />
        </li>
      ))}
    </ol>
  );
}

function SourceText({ source: { url, title, filename } }: { source: Source }) {
  if (!url) return <span dir="auto">{[title, filename].filter(Boolean).join(", ") || t("message.source")}</span>;
  const host = URL.parse(url)?.host ?? url;
  return (
    <>
      <a href={url} target="_blank" rel="noopener noreferrer nofollow" title={url} dir="auto">{title || host}</a>
      {title && <span class="muted">{host}</span>}
    </>
  );
}
