// Messages that a search found, as a list of links: each opens its conversation at the message.

import type { RefObject } from "preact";
import { timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Hit } from "../store/hits.ts";
import type { Search } from "../store/search.ts";
import { useApp } from "./context.ts";
import { FollowLink } from "./follow_link.tsx";

interface Props {
  id: string;
  search: Search;
  open: (hit: Hit) => void;
  /** All hits are of the open conversation: its title is not said again. */
  isInside?: boolean;
  label?: string;
  labelledBy?: string;
  listRef: RefObject<HTMLUListElement | null>;
}

export function Hits({ id, search, open, isInside = false, label, labelledBy, listRef }: Props) {
  const { hits, openedId } = follow(search);
  const row = (hit: Hit) => (
    <li class="hit" data-message={hit.messageId} key={`${hit.instanceId} ${hit.messageId}`}>
      <HitLink hit={hit} isOpened={isInside && hit.messageId === openedId} open={open} />
    </li>
  );
  return (
    <ul id={id} class="hits" aria-label={label} aria-labelledby={labelledBy} ref={listRef}>
      {isInside
        ? hits.map(row)
        : groupsOf(hits).map(({ instanceId, title, found }) => (
          <li class="hit-group" key={instanceId}>
            <h3 dir="auto">{title || t("conversation.new")}</h3>
            <ul>{found.map(row)}</ul>
          </li>
        ))}
    </ul>
  );
}

/** Hits of one conversation together, the one with the best hit first. */
function groupsOf(hits: readonly Hit[]): { instanceId: string; title: string; found: Hit[] }[] {
  const groups = new Map<string, { instanceId: string; title: string; found: Hit[] }>();
  for (const hit of hits) {
    const { instanceId, title } = hit;
    const group = groups.get(instanceId) ?? { instanceId, title, found: [] };
    group.found.push(hit);
    groups.set(instanceId, group);
  }
  return [...groups.values()];
}

function HitLink({ hit, isOpened, open }: {
  hit: Hit;
  isOpened: boolean;
  open: (hit: Hit) => void;
}) {
  const { router } = useApp();
  const place = { messageId: hit.messageId, sessionId: hit.isElsewhere ? hit.sessionId : "" };
  return (
    <FollowLink
      href={router.address({ page: "conversation", id: hit.instanceId, place })}
      aria-current={isOpened ? "true" : undefined}
      go={() => open(hit)}
    >
      <span class="hit-text" dir="auto">
        {hit.segments.map(({ text, isHit }, index) => (isHit ? <mark key={index}>{text}</mark> : text))}
      </span>
      <span class="hit-facts">{factsOf(hit).join(" · ")}</span>
    </FollowLink>
  );
}

function factsOf(hit: Hit): string[] {
  const facts = [t(hit.role === "user" ? "list.from-you" : "list.from-answer"), timeLabel(hit.at)];
  if (hit.isElsewhere) facts.push(t("list.in-other-history"));
  else if (hit.isOtherVersion) facts.push(t("list.in-other-version"));
  return facts;
}

/** Why nothing, or not everything, is shown. */
export function HitsNote({ id, search, isQuiet = false }: { id: string; search: Search; isQuiet?: boolean }) {
  const { query, hits, isPartial, isLoading, error } = follow(search);
  const isNone = query !== "" && !isLoading && !hits.length;
  const text = error || (isNone && !isQuiet ? t("list.no-hit") : isPartial ? t("list.partial") : "");
  return <p id={id} class="hits-note" role="status" hidden={!text}>{text}</p>;
}
