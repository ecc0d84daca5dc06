// Links for readers that work: where each ends and what it shows, with a button that takes it back.

import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { ShareLink } from "../net/shares_api.ts";

interface Props {
  links: readonly ShareLink[];
  /** Of several conversations: each says of which. */
  hasTitles?: boolean;
  open?: (link: ShareLink) => void;
  revoke: (link: ShareLink) => void;
}

export function ShareList({ links, hasTitles = false, open, revoke }: Props) {
  return (
    <ul class="share-list" aria-label={t("sharing.links-working")}>
      {links.map((link) => {
        const title = link.title || t("common.new-conversation");
        return (
          <li key={link.id}>
            <span class="share-facts">
              {hasTitles && (
                <button type="button" class="share-title" dir="auto" onClick={() => open?.(link)}>{title}</button>
              )}
              <span class={hasTitles ? "muted" : ""}>
                {t("sharing.ends", { when: fullTime(link.expires_at) })} · {shownBy(link)}
              </span>
            </span>
            <button
              type="button"
              class="quiet"
              aria-label={t("sharing.revoke-of", { title })}
              onClick={() => revoke(link)}
            >
              {t("sharing.revoke")}
            </button>
          </li>
        );
      })}
    </ul>
  );
}

function shownBy({ tools, files, reasoning }: ShareLink): string {
  const kinds = [
    tools && t("sharing.tools"),
    files && t("sharing.files"),
    reasoning && t("sharing.reasoning"),
  ].filter((kind) => kind !== false);
  return kinds.length ? t("sharing.shows", { kinds: kinds.join(", ") }) : t("sharing.words-only");
}
