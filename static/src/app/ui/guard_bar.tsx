// Says that text from elsewhere is in the conversation and that the agent therefore asks; which text it is, and what can be
// decided about it. One line, unless a call waits and nothing has been decided yet.

import type { ComponentChild } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { type MessageKey, t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import { Guards, type GuardText, isPath, placesOf } from "../store/guards.ts";
import { useApp } from "./context.ts";
import { FollowLink } from "./follow_link.tsx";
import { Problem } from "./problem.tsx";
import { Text } from "./text.tsx";

const KINDS: Record<GuardText["origin"], MessageKey> = {
  web: "guard.web",
  mcp: "guard.mcp",
  file: "guard.file",
};

/** `version`: differs after each change of it. */
export function GuardBar({ version }: { version: string }) {
  const app = useApp();
  const { instance } = follow(app.conversation);
  const guards = follow(useMemo(() => new Guards(app.api, instance.id), [instance.id]));
  useEffect(() => void guards.load(), [guards, version]);
  const { state, error, isBusy } = guards;
  if (!state) return error ? <p id="guard" class="guard is-quiet" role="alert">{t("guard.not-loaded")}</p> : null;
  const places = placesOf(state.texts);
  if (!places.length) return null;
  const decide = (decision: Parameters<Guards["decide"]>[0]) => () => {
    guards.decide(decision);
    document.getElementById("scroller")?.focus({ preventScroll: true }); // the button may go away
  };
  const button = (decision: Parameters<Guards["decide"]>[0], label: MessageKey) => (
    <button type="button" class="button" disabled={isBusy} onClick={decide(decision)}>{t(label)}</button>
  );
  // What one attached oneself is no news: it is named when a call asks because of it.
  const isOwnOnly = places.every((text) => text.origin === "file" && text.message_id && !text.call_id && !isPath(text));
  const isLoud = state.is_guarded && state.decision !== "ask" && instance.waitingCount > 0;
  if (isOwnOnly && state.is_guarded && instance.waitingCount === 0) return null;
  const buttons = isOwn(instance) && !instance.isReadOnly && (
    <p class="guard-buttons">
      {!state.is_guarded && button("ask", "guard.turn-on")}
      {state.is_guarded && button("conversation", "guard.allow")}
      {state.is_guarded && button("until_new", "guard.allow-until-new")}
      {isLoud && button("ask", "guard.keep")}
    </p>
  );
  const isInside = state.is_guarded && !isLoud; // nothing asks just now
  return (
    <section id="guard" class={isLoud ? "guard" : "guard is-quiet"} aria-label={t("guard.about")}>
      <div role="status">
        <p>
          {state.is_guarded
            ? <Reason places={places} isLong={isLoud} />
            : t(state.decision === "until_new" ? "guard.allowed-until-new" : "guard.allowed")}
        </p>
      </div>
      <details>
        <summary>{t("guard.show")}</summary>
        <ul class="guard-texts">
          {places.map((text) => (
            <li key={text.number}>
              <Place text={text} />
            </li>
          ))}
        </ul>
        {state.relaxed && <p class="muted">{t("guard.relaxed", { reason: state.relaxed.reason })}</p>}
        {isInside && buttons}
      </details>
      <Problem text={error} />
      {!isInside && buttons}
    </section>
  );
}

function Reason({ places, isLong }: { places: GuardText[]; isLong: boolean }) {
  const source = <Place text={places[0]} />;
  const more = places.length - 1;
  if (more) return <Text id={isLong ? "guard.asks-more" : "guard.short-more"} source={source} count={more} />;
  return <Text id={isLong ? "guard.asks" : "guard.short"} source={source} />;
}

/** A text by its source: it leads to where it is in the conversation, or to its file. The source is a stranger's text. */
function Place({ text }: { text: GuardText }): ComponentChild {
  const app = useApp();
  const name = <bdi class="guard-source">{text.source || t(KINDS[text.origin])}</bdi>;
  if (isPath(text)) {
    return <button type="button" class="quiet" onClick={() => app.showFile(text.source)}>{name}</button>;
  }
  if (!text.message_id) return name;
  const { id } = app.conversation.instance;
  const place = { messageId: text.message_id, sessionId: "" };
  return (
    <FollowLink
      href={app.router.address({ page: "conversation", id, place })}
      go={() => app.place.open(id, { place })}
    >
      {name}
    </FollowLink>
  );
}
