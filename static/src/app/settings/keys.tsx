// The section "Models and keys": keys of a person's own for providers. They are written, and only their ends are shown.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { dayText } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { AccountApi, Provider } from "../net/account_api.ts";
import type { Reading } from "../ui/reading.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { AccountRow, agoText, Facts, isSure, useAccountApi, useFacts, useVerb } from "./account_pieces.tsx";

const OUTCOMES = {
  works: "account.key-works",
  refused: "account.key-refused",
  unreachable: "account.key-unreachable",
} as const;

export function KeysSection() {
  const api = useAccountApi();
  const reading = useFacts(() => api.providers());
  return (
    <div class="account-section">
      <Facts reading={reading}>
        {(providers) =>
          providers.length
            ? (
              <>
                <p class="muted">{t("account.keys-about")}</p>
                <ul class="account-rows">
                  {providers.map((each) => <Row key={each.provider} provider={each} reading={reading} />)}
                </ul>
              </>
            )
            : <p>{t("account.keys-none")}</p>}
      </Facts>
    </div>
  );
}

function Row({ provider, reading }: { provider: Provider; reading: Reading<Provider[]> }) {
  const app = useApp();
  const api = useAccountApi();
  const [isOpen, setOpen] = useState(false);
  const { problem, isBusy, attempt } = useVerb(reading);
  const { provider: name, models, key } = provider;
  const remove = async () => {
    const question = {
      title: t("account.key-remove-title", { name }),
      text: t("account.key-remove-about"),
      confirm: t("account.key-remove"),
    };
    if (await isSure(app, question)) await attempt(() => api.removeKey(name));
  };
  const button = (text: string, label: string, verb: () => void) => (
    <button type="button" class="button" disabled={isBusy} aria-label={label} onClick={verb}>{text}</button>
  );
  return (
    <AccountRow
      icon="key"
      name={name}
      verbs={
        <>
          {key && button(t("account.key-try"), t("account.key-try-named", { name }), () =>
            void attempt(() =>
              api.tryKey(name)
            ))}
          {!isOpen && button(
            t(key ? "account.key-replace" : "account.key-add"),
            t(key ? "account.key-replace-named" : "account.key-add-named", { name }),
            () =>
              setOpen(true),
          )}
          {key && button(t("account.key-remove"), t("account.key-remove-named", { name }), () => void remove())}
        </>
      }
    >
      {models.length > 0 && <p class="muted">{t("account.key-models", { models: models.join(", ") })}</p>}
      {key
        ? (
          <>
            <p>{t("account.key-ends", { ending: key.ending })}</p>
            <p class="muted">{t("account.key-since", { day: dayText(key.created_at) })}</p>
          </>
        )
        : <p>{t("account.key-none")}</p>}
      <p class={key?.outcome && key.outcome !== "works" ? "is-error" : "muted"} role="status">
        {key?.outcome && key.tried_at &&
          t(OUTCOMES[key.outcome as keyof typeof OUTCOMES], { ago: agoText(key.tried_at) })}
      </p>
      <Problem text={problem} />
      {isOpen && <KeyForm api={api} name={name} reading={reading} close={() => setOpen(false)} />}
    </AccountRow>
  );
}

interface FormProps {
  api: AccountApi;
  name: string;
  reading: Reading<Provider[]>;
  close: () => void;
}

function KeyForm({ api, name, reading, close }: FormProps) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    try {
      await api.storeKey(name, key.trim());
      await reading.again();
      close();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="account-form"
      onSubmit={(event) => void submit(event)}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <label for={id} class="field-label">{t("account.key-field", { name })}</label>
      <input
        id={id}
        class="field"
        type="password"
        required
        minLength={8}
        maxLength={500}
        autocomplete="off"
        dir="ltr"
        ref={field}
        value={key}
        onInput={(event) => setKey(event.currentTarget.value)}
      />
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("account.key-store")}</button>
        <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}
