// The answers to a call that asks for approval: once, for always, with changes, not at all and why. Two of them open a few more
// words below the buttons.

import type { Ref } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Decision } from "../store/deciding.ts";
import type { Offer } from "../store/types.ts";
import { Text } from "./text.tsx";

interface Props {
  title: string;
  offers: readonly Offer[];
  isBusy: boolean;
  /** Opens the arguments for changes; nothing where they may not be changed. */
  edit: (() => void) | null;
  editButton: Ref<HTMLButtonElement>;
  decide: (decision: Decision) => Promise<void>;
}

type Opened = "" | "always" | "why";

export function DecisionButtons({ title, offers, isBusy, edit, editButton, decide }: Props) {
  const [opened, open] = useState<Opened>("");
  const row = useRef<HTMLParagraphElement>(null);
  const close = () => {
    const was = opened;
    open("");
    row.current?.querySelector<HTMLElement>(`[data-opens=${was}]`)?.focus();
  };
  const toggle = (what: Opened) => () => open(opened === what ? "" : what);
  return (
    <>
      <p class="question-buttons" ref={row}>
        <button type="button" class="button is-primary" disabled={isBusy} onClick={() => decide({ approved: true })}>
          {t("approvals.allow-once")}
        </button>
        {offers.length > 0 && (
          <button
            type="button"
            class="button is-offer"
            data-opens="always"
            disabled={isBusy}
            aria-expanded={opened === "always"}
            onClick={toggle("always")}
          >
            <span>
              <Text id="approvals.always" what={<Offered title={title} offers={offers} />} />
            </span>
          </button>
        )}
        {edit && (
          <button type="button" class="button" disabled={isBusy} ref={editButton} onClick={edit}>
            {t("common.edit")}
          </button>
        )}
        <button type="button" class="button" disabled={isBusy} onClick={() => decide({ approved: false })}>
          {t("approvals.decline")}
        </button>
        <button
          type="button"
          class="button"
          data-opens="why"
          disabled={isBusy}
          aria-expanded={opened === "why"}
          onClick={toggle("why")}
        >
          {t("approvals.say-why")}
        </button>
      </p>
      {opened === "always" && <Always title={title} offers={offers} isBusy={isBusy} decide={decide} close={close} />}
      {opened === "why" && <Why isBusy={isBusy} decide={decide} close={close} />}
    </>
  );
}

/** The calls that a rule would cover: by their pattern, or all of the tool's. */
function Offered({ title, offers }: { title: string; offers: readonly Offer[] }) {
  return offers.map(({ pattern }, at) => (
    <>
      {at > 0 && ", "}
      {pattern === "*"
        ? <bdi>{t("approvals.quoted", { words: withoutTricks(title) })}</bdi>
        : <code dir="ltr">{withoutTricks(pattern)}</code>}
    </>
  ));
}

interface MoreProps {
  isBusy: boolean;
  decide: (decision: Decision) => Promise<void>;
  close: () => void;
}

function Always({ title, offers, isBusy, decide, close }: MoreProps & Pick<Props, "title" | "offers">) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => element.current!.querySelector("button")!.focus(), []);
  const always = (level: "conversation" | "owner") => () => decide({ approved: true, always: level });
  return (
    <div class="question-more" ref={element} onKeyDown={onEscape(close)}>
      <p>
        <Text id="approvals.always-about" what={<Offered title={title} offers={offers} />} />
      </p>
      <p class="question-buttons">
        <button type="button" class="button" disabled={isBusy} onClick={always("conversation")}>
          {t("approvals.always-here")}
        </button>
        {!offers.some((offer) => offer.here_only) && (
          <button type="button" class="button" disabled={isBusy} onClick={always("owner")}>
            {t("approvals.always-everywhere")}
          </button>
        )}
        <button type="button" class="button" disabled={isBusy} onClick={close}>{t("common.cancel")}</button>
      </p>
    </div>
  );
}

const LONGEST_REASON = 1_000;

function Why({ isBusy, decide, close }: MoreProps) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const [reason, setReason] = useState("");
  const [isForAll, setForAll] = useState(false);
  useEffect(() => field.current!.focus(), []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    decide({ approved: false, reason: reason.trim(), deniesAll: isForAll });
  };
  return (
    <form class="question-more" onSubmit={onSubmit} onKeyDown={onEscape(close)}>
      <label for={id}>{t("approvals.why")}</label>
      <textarea
        id={id}
        class="field"
        rows={2}
        dir="auto"
        maxLength={LONGEST_REASON}
        ref={field}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <label class="question-check">
        <input
          type="checkbox"
          checked={isForAll}
          onChange={(event) => setForAll(event.currentTarget.checked)}
        />
        {t("approvals.decline-all")}
      </label>
      <p class="question-buttons">
        <button type="submit" class="button" disabled={isBusy}>{t("approvals.decline")}</button>
        <button type="button" class="button" disabled={isBusy} onClick={close}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

/** Escape puts away what was opened, and nothing around it. */
const onEscape = (close: () => void) => (event: KeyboardEvent) => {
  if (event.key !== "Escape") return;
  event.preventDefault();
  event.stopPropagation();
  close();
};
