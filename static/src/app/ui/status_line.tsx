// What goes on, in one line under the messages. It counts by itself; assistive technology announces when something else goes on,
// not each second.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import { isOwn } from "../store/instances.ts";
import { type Status, type StatusAction, statusOf } from "../store/status.ts";
import { Icon } from "./icon.tsx";
import type { Reader } from "./reader.ts";

interface Props {
  app: App;
  conversation: Conversation;
  reader: Reader;
}

const STEP_MS = 1_000; // of a countdown; silence is no event either

export function StatusLine({ app, conversation, reader }: Props) {
  follow(app.place);
  follow(conversation);
  const { running } = conversation;
  if (running?.message) conversation.revision(running.message.id); // its parts say what goes on
  const [, tick] = useState(0);
  const isCounting = running !== null || conversation.compacting !== "";
  useEffect(() => {
    if (!isCounting) return;
    const timer = setInterval(() => tick((count) => count + 1), STEP_MS);
    return () => clearInterval(timer);
  }, [isCounting]);
  const status = statusOf(conversation, follow(app.outbox), follow(app.summaries));
  const hasOther = isOwn(conversation.instance) && follow(app.models).of(conversation.instance.agent).length > 1;
  const actions = (status?.actions ?? []).filter(({ name }) => name !== "otherModel" || hasOther);
  useSpoken(app, conversation, status);
  useNotice(app, reader, status);
  return (
    <div id="status" class={status ? `status is-${status.kind}` : "status"} hidden={!status}>
      {status && (
        <>
          <p>
            {status.kind === "error" && <Icon name="alert" />}
            <span>{status.text}</span>
          </p>
          {status.detail && <p class="muted">{status.detail}</p>}
          {status.reason && (
            <details class="status-reason">
              <summary>{t("status.details")}</summary>
              <p dir="auto">{status.reason}</p>
            </details>
          )}
          {Boolean(actions.length) && (
            <p class="status-actions">
              {actions.map(({ name, label }) => (
                <button
                  key={name}
                  type="button"
                  class="button"
                  data-act={name}
                  onClick={() => act(name, app, conversation, reader)}
                >
                  {label}
                </button>
              ))}
            </p>
          )}
        </>
      )}
    </div>
  );
}

function act(name: StatusAction["name"], app: App, conversation: Conversation, reader: Reader): void {
  const { deciding, sending, summaries } = app;
  const decideAll = async (approved: boolean) => {
    await deciding.decideAll(conversation, approved);
    app.composer.focus(); // the buttons go away
  };
  const actions: Record<StatusAction["name"], () => unknown> = {
    reload: () => conversation.refresh(),
    retryFailed: () => sending.retryFailed(),
    otherModel: () => app.models.wish(() => sending.retryFailed()),
    compactAgain: () => summaries.again(),
    dismissCompaction: () => {
      summaries.dismiss();
      reader.focus();
    },
    showSummary: () => reader.showSummary(summaries.outcome?.compactionId ?? ""),
    openApprovals: () => app.place.showApprovals(),
    approveAll: () => decideAll(true),
    denyAll: () => decideAll(false),
  };
  actions[name]();
}

/** Say once what a turn has begun to wait for. What ends is said elsewhere. */
function useSpoken(app: App, { running }: Conversation, status: Status | null): void {
  const { retry, waits } = running ?? {};
  const key = retry ? `retry ${retry.code} ${retry.attempt}` : waits?.length ? JSON.stringify(waits) : "";
  useEffect(() => {
    if (key && status) app.announcer.say(status.text);
  }, [key]);
}

/** What became of a command stands at the end of the list; a reader further up gets a notice. */
function useNotice(app: App, reader: Reader, status: Status | null): void {
  const { outcome, error } = app.summaries;
  const announced = useRef<unknown>(outcome ?? error);
  useEffect(() => {
    const news = outcome ?? error;
    if (news === announced.current) return;
    announced.current = news;
    if (news && status && !reader.isFollowing) app.notices.show(status.text);
  }, [outcome, error]);
}
