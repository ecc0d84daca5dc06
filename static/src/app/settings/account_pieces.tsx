// Pieces that the sections about a person's account share: what is read, rows with a verb, and questions before it is done.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { relativeTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { AccountApi } from "../net/account_api.ts";
import { Failure } from "../panels/panel.tsx";
import { Reading } from "../ui/reading.ts";
import { useAttempt } from "../panels/tools_pieces.tsx";
import type { App } from "../store/app.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";

export function useAccountApi(): AccountApi {
  const app = useApp();
  return useState(() => new AccountApi(app.api))[0];
}

/** Something of the account that is read while it is shown. */
export function useFacts<Value>(read: (signal: AbortSignal) => Promise<Value>): Reading<Value> {
  const [reading] = useState(() => new Reading(read));
  useEffect(() => {
    void reading.again();
    return () => reading.stop();
  }, []);
  return follow(reading);
}

/** Do something and read again; as in the views of tools. */
export const useVerb = (reading: Reading<unknown>) => useAttempt({ reading }, "scroller");

const MINUTE = 60_000;

/** How long ago something was, no finer than a minute. */
export const agoText = (iso: string): string =>
  Date.now() - Date.parse(iso) < MINUTE ? t("account.just-now") : relativeTime(iso);

interface FactsProps<Value> {
  reading: Reading<Value>;
  children: (value: Value) => ComponentChildren;
}

/** What was read, or why not. */
export function Facts<Value>({ reading, children }: FactsProps<Value>) {
  if (reading.value !== null) return <>{children(reading.value)}</>;
  if (reading.error) return <Failure text={reading.error} again={() => void reading.again()} />;
  return <p class="muted">{t("common.loading")}</p>;
}

interface RowProps {
  icon: string;
  name: string;
  /** Beside the name: something that sets this row apart. */
  mark?: string;
  children?: ComponentChildren;
  verbs?: ComponentChildren;
}

/** One thing of the account: its name, facts below, verbs beside. */
export function AccountRow({ icon, name, mark, children, verbs }: RowProps) {
  return (
    <li class="account-row">
      <Icon name={icon} />
      <div class="account-facts">
        <p class="account-name">
          <bdi>{name}</bdi>
          {mark && <span class="account-mark">{mark}</span>}
        </p>
        {children}
      </div>
      {verbs && <div class="account-verbs">{verbs}</div>}
    </li>
  );
}

interface Question {
  title: string;
  text: string;
  confirm: string;
}

/** Ask before something that cannot be undone. */
export async function isSure({ dialogs }: App, question: Question): Promise<boolean> {
  return await dialogs.ask("confirm", { ...question, isDanger: true }) !== null;
}
