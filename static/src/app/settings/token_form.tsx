// A new API token: its name, how long it works, and what it may.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { AccountApi, NewToken, Token } from "../net/account_api.ts";
import { Problem } from "../ui/problem.tsx";
import type { Reading } from "../ui/reading.ts";

const PERIODS = [7, 30, 90, 365];
const FIRST_PERIOD = 90;
const KINDS = {
  all: "account.token-may-all",
  streams: "account.token-may-streams",
  executor: "account.token-may-executor",
} as const;
type Kind = keyof typeof KINDS;

interface Props {
  api: AccountApi;
  reading: Reading<Token[]>;
  close: () => void;
  done: (token: NewToken) => void;
}

export function TokenForm({ api, reading, close, done }: Props) {
  const id = useId();
  const [name, setName] = useState("");
  const [days, setDays] = useState<number | null>(FIRST_PERIOD);
  const [kind, setKind] = useState<Kind>("all");
  const [executor, setExecutor] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem("");
    const scopes = { all: [], streams: ["streams"], executor: [`execute:${executor.trim()}`] }[kind];
    try {
      const token = await api.makeToken({ name: name.trim(), days, scopes });
      void reading.again();
      done(token);
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <form
      class="account-form"
      aria-label={t("account.token-new")}
      onSubmit={(event) => void submit(event)}
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <label for={`${id}-name`} class="field-label">{t("account.token-name")}</label>
      <input
        id={`${id}-name`}
        class="field"
        type="text"
        required
        maxLength={100}
        dir="auto"
        autocomplete="off"
        placeholder={t("account.token-name-example")}
        ref={first}
        value={name}
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <label for={`${id}-days`} class="field-label">{t("account.token-days")}</label>
      <select
        id={`${id}-days`}
        class="field"
        value={days ?? 0}
        onChange={(event) => setDays(Number(event.currentTarget.value) || null)}
      >
        {PERIODS.map((count) => <option key={count} value={count}>{t("account.days", { count })}</option>)}
        <option value={0}>{t("account.token-days-never")}</option>
      </select>
      <KindChoice form={id} kind={kind} choose={setKind} />
      {kind === "executor" && <ExecutorName id={`${id}-executor`} name={executor} set={setExecutor} />}
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("account.token-make")}</button>
        <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

function KindChoice({ form, kind, choose }: { form: string; kind: Kind; choose: (kind: Kind) => void }) {
  return (
    <fieldset class="tools-levels">
      <legend class="field-label">{t("account.token-may")}</legend>
      {(Object.keys(KINDS) as Kind[]).map((value) => (
        <label class="ticked" key={value}>
          <input
            type="radio"
            class="tick"
            name={`${form}-kind`}
            checked={kind === value}
            onChange={() => choose(value)}
          />
          <span>{t(KINDS[value])}</span>
        </label>
      ))}
    </fieldset>
  );
}

function ExecutorName({ id, name, set }: { id: string; name: string; set: (name: string) => void }) {
  return (
    <>
      <label for={id} class="field-label">{t("account.token-executor")}</label>
      <input
        id={id}
        class="field"
        type="text"
        required
        maxLength={50}
        pattern="[a-z0-9][a-z0-9_\-]*"
        title={t("account.token-executor-form")}
        dir="ltr"
        autocomplete="off"
        spellcheck={false}
        value={name}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </>
  );
}
