// Search within the open conversation: a field under its head, the hits below it, each opens at its place.

import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Hit } from "../store/hits.ts";
import { useApp } from "./context.ts";
import { Hits, HitsNote } from "./hits.tsx";
import { Icon, IconButton } from "./icon.tsx";
import { moveFocus } from "./popover.tsx";
import { ShowMore } from "./show_more.tsx";

const WIDE = matchMedia("(min-width: 760px)");

export function FindBar() {
  const app = useApp();
  const find = follow(app.find);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLUListElement>(null);
  const before = useRef<Element | null>(null);
  const [text, setText] = useState("");
  useLayoutEffect(() => {
    before.current = document.activeElement;
    field.current!.focus();
  }, []);
  const close = () => {
    app.place.setFinding(false);
    (before.current as HTMLElement | null)?.focus();
  };
  const type = (typed: string) => {
    setText(typed);
    find.type(typed.trim());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else moveFocus(event, [field.current!, ...list.current!.querySelectorAll<HTMLElement>("a")]);
  };
  /** On a wide page the hits stay beside what they lead to, and the focus with them; a narrow one has no room for both. */
  const open = (hit: Hit) => {
    const { query } = find;
    find.opened(hit);
    if (!WIDE.matches) app.place.setFinding(false);
    const place = { messageId: hit.messageId, sessionId: hit.isElsewhere ? hit.sessionId : "" };
    app.place.open(hit.instanceId, { place, keepsFocus: WIDE.matches, query });
  };
  const { hits, hasMore } = find;
  return (
    <form
      id="find-bar"
      class="find-bar"
      role="search"
      aria-label={t("find.bar")}
      onSubmit={(event) => event.preventDefault()}
      onKeyDown={onKeyDown}
    >
      <FindField field={field} text={text} type={type} close={close} hits={hits.length} hasMore={hasMore} />
      <HitsNote id="find-note" search={find} />
      <div class="find-hits">
        <Hits id="find-hits" search={find} open={open} isInside label={t("find.hits")} listRef={list} />
        <ShowMore
          id="more-find-hits"
          label={t("list.more-messages")}
          isShown={hasMore}
          load={() => find.more()}
          rows={list}
        />
      </div>
    </form>
  );
}

interface FieldProps {
  field: RefObject<HTMLInputElement | null>;
  text: string;
  type: (text: string) => void;
  close: () => void;
  hits: number;
  hasMore: boolean;
}

function FindField({ field, text, type, close, hits, hasMore }: FieldProps) {
  const label = t("conversation.find");
  return (
    <div class="find-field">
      <Icon name="search" />
      <input
        id="find"
        ref={field}
        type="search"
        placeholder={label}
        aria-label={label}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <span id="find-count" class="find-count" role="status" hidden={!hits}>
        {hits > 0 && t(hasMore ? "find.found-more" : "find.found", { count: hits })}
      </span>
      <IconButton
        id="find-close"
        icon="close"
        label={t("find.close")}
        title={t("find.close-title")}
        onClick={close}
      />
    </div>
  );
}
