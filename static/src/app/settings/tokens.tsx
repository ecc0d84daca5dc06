// The section "Tokens and programs": a person's API tokens, and the programs that may use agents in the person's name.

import { useEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard.ts";
import { dayText } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { NewToken, Program, Token } from "../net/account_api.ts";
import type { Reading } from "../ui/reading.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { AccountRow, agoText, Facts, isSure, useAccountApi, useFacts, useVerb } from "./account_pieces.tsx";
import { TokenForm } from "./token_form.tsx";

export function TokensSection() {
  return (
    <div class="account-section">
      <Tokens />
      <Programs />
    </div>
  );
}

function Tokens() {
  const api = useAccountApi();
  const reading = useFacts(() => api.tokens());
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<NewToken | null>(null);
  const add = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    setMade(null);
    setTimeout(() => add.current?.focus());
  };
  return (
    <section aria-labelledby="tokens-title">
      <h3 id="tokens-title">{t("account.tokens")}</h3>
      <p class="muted">{t("account.tokens-about")}</p>
      {made && <Secret token={made} close={close} />}
      {isOpen && !made && <TokenForm api={api} reading={reading} close={close} done={setMade} />}
      {!isOpen && (
        <p class="panel-actions">
          <button type="button" class="button" ref={add} onClick={() => setOpen(true)}>
            <Icon name="plus" />
            {t("account.token-new")}
          </button>
        </p>
      )}
      <Facts reading={reading}>
        {(tokens) =>
          tokens.length > 0 && (
            <ul class="account-rows">
              {tokens.map((token) => <TokenRow key={token.id} token={token} reading={reading} />)}
            </ul>
          )}
      </Facts>
    </section>
  );
}

/** The secret of a token that was made just now: it is nowhere else. */
function Secret({ token, close }: { token: NewToken; close: () => void }) {
  const app = useApp();
  const first = useRef<HTMLButtonElement>(null);
  const [isCopied, setCopied] = useState(false);
  useEffect(() => first.current?.focus(), []);
  const copy = async () => {
    const done = await copyText(token.secret);
    setCopied(done);
    app.announcer.say(t(done ? "account.token-copied" : "account.token-copy-failed"));
  };
  return (
    <div class="account-secret" role="group" aria-label={t("account.token-secret", { name: token.name })}>
      <p>{t("account.token-made", { name: withoutTricks(token.name) })}</p>
      <code class="account-code" dir="ltr">{token.secret}</code>
      <p class="panel-actions">
        <button type="button" class="button is-primary" ref={first} onClick={() => void copy()}>
          <Icon name={isCopied ? "check" : "copy"} />
          {t(isCopied ? "account.token-copied" : "account.token-copy")}
        </button>
        <button type="button" class="button" onClick={close}>{t("account.token-kept")}</button>
      </p>
    </div>
  );
}

function TokenRow({ token, reading }: { token: Token; reading: Reading<Token[]> }) {
  const app = useApp();
  const api = useAccountApi();
  const { problem, isBusy, attempt } = useVerb(reading);
  const name = withoutTricks(token.name);
  const revoke = async () => {
    const question = {
      title: t("account.token-revoke-title", { name }),
      text: t("account.token-revoke-about"),
      confirm: t("account.token-revoke"),
    };
    if (await isSure(app, question)) await attempt(() => api.revokeToken(token.id));
  };
  const facts = [
    `${token.prefix}…`,
    token.used_at ? t("account.used", { ago: agoText(token.used_at) }) : t("account.never-used"),
    token.expires_at ? t("account.token-until", { day: dayText(token.expires_at) }) : t("account.token-for-ever"),
  ];
  return (
    <AccountRow
      icon="key"
      name={name}
      verbs={
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={t("account.token-revoke-named", { name })}
          onClick={() => void revoke()}
        >
          {t("account.token-revoke")}
        </button>
      }
    >
      <p class="muted">{facts.join(" · ")}</p>
      {token.scopes.length > 0 && <p class="muted">{token.scopes.map(scopeText).join(" ")}</p>}
      <Problem text={problem} />
    </AccountRow>
  );
}

/** What a token is limited to, as a sentence. */
function scopeText(scope: string): string {
  if (scope === "streams") return t("account.scope-streams");
  return t("account.scope-executor", { name: scope.replace(/^execute:/, "") });
}

function Programs() {
  const api = useAccountApi();
  const reading = useFacts(() => api.programs());
  return (
    <section aria-labelledby="programs-title">
      <h3 id="programs-title">{t("account.programs")}</h3>
      <p class="muted">{t("account.programs-about")}</p>
      <Facts reading={reading}>
        {(programs) =>
          programs.length
            ? (
              <ul class="account-rows">
                {programs.map((program) => <ProgramRow key={program.id} program={program} reading={reading} />)}
              </ul>
            )
            : <p>{t("account.programs-none")}</p>}
      </Facts>
    </section>
  );
}

const ABILITIES = { chat: "account.may-chat", tools: "account.may-tools", history: "account.may-history" } as const;

function ProgramRow({ program, reading }: { program: Program; reading: Reading<Program[]> }) {
  const app = useApp();
  const api = useAccountApi();
  const { problem, isBusy, attempt } = useVerb(reading);
  const name = withoutTricks(program.program) || t("account.program-unnamed");
  const agent = app.agents.find((each) => each.name === program.agent)?.title ?? program.agent;
  const end = async () => {
    const question = {
      title: t("account.program-end-title", { name }),
      text: t("account.program-end-about"),
      confirm: t("account.program-end"),
    };
    if (await isSure(app, question)) await attempt(() => api.endProgram(program.id));
  };
  const facts = [
    t("account.program-since", { day: dayText(program.created_at) }),
    program.used_at ? t("account.used", { ago: agoText(program.used_at) }) : t("account.never-used"),
  ];
  return (
    <AccountRow
      icon="link"
      name={name}
      verbs={
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={t("account.program-end-named", { name })}
          onClick={() => void end()}
        >
          {t("account.program-end")}
        </button>
      }
    >
      <p>{t("account.program-agent", { agent })}</p>
      <ul class="account-abilities">
        {program.scopes.map((scope) => <li key={scope}>{t(ABILITIES[scope as keyof typeof ABILITIES])}</li>)}
      </ul>
      <p class="muted">{facts.join(" · ")}</p>
      <Problem text={problem} />
    </AccountRow>
  );
}
