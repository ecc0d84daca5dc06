// The end of an account: what goes with it, the password or a sign-in of a moment ago, and a last question.

import { useId, useState } from "preact/hooks";
import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { Account } from "../net/account_api.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { Facts, isSure, useAccountApi, useFacts } from "./account_pieces.tsx";

export function AccountEnd() {
  const api = useAccountApi();
  const reading = useFacts(() => api.account());
  return (
    <section aria-labelledby="end-title">
      <h3 id="end-title">{t("account.end")}</h3>
      <Facts reading={reading}>{(account) => <End account={account} />}</Facts>
    </section>
  );
}

function End({ account }: { account: Account }) {
  const [isOpen, setOpen] = useState(false);
  if (account.is_last_administrator) return <p>{t("account.end-last-administrator")}</p>;
  return (
    <>
      <p class="muted">{t("account.end-about")}</p>
      <ul class="account-abilities">{goes(account).map((text) => <li key={text}>{text}</li>)}</ul>
      <p class="muted">{t("account.end-stays")}</p>
      {isOpen ? <Form account={account} close={() => setOpen(false)} /> : (
        <p class="panel-actions">
          <button type="button" class="button is-danger" onClick={() => setOpen(true)}>{t("account.end-begin")}</button>
        </p>
      )}
    </>
  );
}

/** What goes with an account, each as a line. */
function goes(account: Account): string[] {
  const { conversations, files, file_bytes, workspaces, memberships } = account;
  return [
    t("account.end-conversations", { count: conversations }),
    ...(files ? [t("account.end-files", { count: files, size: fileSize(file_bytes) })] : []),
    ...(workspaces ? [t("account.end-workspaces", { count: workspaces })] : []),
    ...(memberships ? [t("account.end-memberships", { count: memberships })] : []),
    t("account.end-rest"),
  ];
}

function Form({ account, close }: { account: Account; close: () => void }) {
  const app = useApp();
  const api = useAccountApi();
  const id = useId();
  const [password, setPassword] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    const question = {
      title: t("account.end-title", { name: account.name }),
      text: t("account.end-sure"),
      confirm: t("account.end-confirm"),
    };
    if (!await isSure(app, question)) return;
    setBusy(true);
    setProblem("");
    try {
      await api.deleteAccount(password);
      location.assign(app.boot.urls.home);
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  if (!account.has_password && !account.is_fresh) return <p role="status">{t("account.end-sign-in")}</p>;
  return (
    <form class="account-form" onSubmit={(event) => void submit(event)}>
      {account.has_password && (
        <>
          <label for={`${id}-password`} class="field-label">{t("account.end-password")}</label>
          <input
            id={`${id}-password`}
            class="field"
            type="password"
            required
            autocomplete="current-password"
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </>
      )}
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-danger" disabled={isBusy}>{t("account.end-confirm")}</button>
        <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}
