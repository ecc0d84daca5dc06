// The section "Your data": everything as one zip, and the end of the account.

import { useEffect } from "preact/hooks";
import { dayText, fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { DataExport } from "../net/account_api.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { Facts, isSure, useAccountApi, useFacts, useVerb } from "./account_pieces.tsx";
import { AccountEnd } from "./account_end.tsx";

const LOOK_MS = 700;

export function YourDataSection() {
  return (
    <div class="account-section">
      <Export />
      <AccountEnd />
    </div>
  );
}

function Export() {
  const api = useAccountApi();
  const reading = useFacts(() => api.exports());
  const { problem, isBusy, attempt } = useVerb(reading);
  const isWriting = reading.value?.items[0]?.status === "writing";
  useEffect(() => {
    if (isWriting) reading.watch(LOOK_MS);
  }, [reading.value]);
  const begin = () => void attempt(() => api.startExport());
  return (
    <section aria-labelledby="export-title">
      <h3 id="export-title">{t("account.export")}</h3>
      <p class="muted">{t("account.export-about")}</p>
      <Facts reading={reading}>
        {({ items: [made] }) => (
          <>
            {made && <Made made={made} attempt={attempt} isBusy={isBusy} />}
            {made?.status !== "writing" && (
              <p class="panel-actions">
                <button type="button" class="button" disabled={isBusy} onClick={begin}>
                  <Icon name="save" />
                  {t(made ? "account.export-again" : "account.export-begin")}
                </button>
              </p>
            )}
          </>
        )}
      </Facts>
      <Problem text={problem} />
    </section>
  );
}

interface MadeProps {
  made: DataExport;
  attempt: (verb: () => Promise<unknown>) => Promise<boolean>;
  isBusy: boolean;
}

function Made({ made, attempt, isBusy }: MadeProps) {
  const app = useApp();
  const api = useAccountApi();
  const remove = async () => {
    const question = {
      title: t("account.export-remove-title"),
      text: t("account.export-remove-about"),
      confirm: t("account.export-remove"),
    };
    if (await isSure(app, question)) await attempt(() => api.removeExport(made.id));
  };
  const stop = (
    <button
      type="button"
      class="button"
      disabled={isBusy}
      onClick={() => void attempt(() => api.removeExport(made.id))}
    >
      {t("account.export-stop")}
    </button>
  );
  if (made.status === "writing") {
    const label = made.total
      ? t("account.export-writing", { done: made.done, total: made.total })
      : t("account.export-beginning");
    return (
      <div class="account-progress">
        <p aria-live="polite">{label}</p>
        <progress max={1} value={made.total ? made.done / made.total : undefined} aria-label={label} />
        {stop}
      </div>
    );
  }
  if (made.status === "failed") return <p class="is-error" role="alert">{t("account.export-failed")}</p>;
  const facts = [
    t("account.export-made", { day: dayText(made.created_at) }),
    fileSize(made.byte_size),
    t("account.export-until", { day: dayText(made.expires_at) }),
  ];
  return (
    <div class="account-secret">
      <p class="account-name">{t("account.export-ready")}</p>
      <p class="muted">{facts.join(" · ")}</p>
      <p class="panel-actions">
        <a class="button is-primary" href={api.exportAddress(made.id)} download>{t("account.export-download")}</a>
        <button type="button" class="button" disabled={isBusy} onClick={() => void remove()}>
          {t("account.export-remove")}
        </button>
      </p>
    </div>
  );
}
