// The section "Sessions": the browsers that are signed in, and the end of each.

import { t } from "../lib/i18n.ts";
import type { Browser } from "../net/account_api.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { AccountRow, agoText, Facts, isSure, useAccountApi, useFacts, useVerb } from "./account_pieces.tsx";

const PHONES = new Set(["iPhone", "iPad", "Android"]);

export function BrowsersSection() {
  const app = useApp();
  const api = useAccountApi();
  const reading = useFacts(() => api.browsers());
  const { problem, isBusy, attempt } = useVerb(reading);
  const endOthers = async () => {
    const question = {
      title: t("account.sign-out-others-title"),
      text: t("account.sign-out-others-about"),
      confirm: t("account.sign-out-others"),
    };
    if (await isSure(app, question)) await attempt(() => api.signOutOthers());
  };
  return (
    <div class="account-section">
      <Facts reading={reading}>
        {({ items, is_known }) => {
          if (!is_known) return <p>{t("account.browsers-unknown")}</p>;
          return (
            <>
              <p class="muted">{t("account.browsers-about")}</p>
              <ul class="account-rows">
                {items.map((browser) => (
                  <Row
                    key={browser.id}
                    browser={browser}
                    isBusy={isBusy}
                    end={() => void attempt(() => api.signOut(browser.id))}
                  />
                ))}
              </ul>
              <Problem text={problem} />
              {items.some((each) => !each.is_current) && (
                <p class="panel-actions">
                  <button type="button" class="button" disabled={isBusy} onClick={() => void endOthers()}>
                    {t("account.sign-out-others")}
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Facts>
    </div>
  );
}

function Row({ browser, isBusy, end }: { browser: Browser; isBusy: boolean; end: () => void }) {
  const name = nameOf(browser);
  const isHere = browser.is_current;
  const facts = [
    t("account.signed-in", { ago: agoText(browser.created_at) }),
    ...(isHere ? [] : [t("account.seen", { ago: agoText(browser.seen_at) })]),
  ];
  return (
    <AccountRow
      icon={PHONES.has(browser.system) ? "person" : "globe"}
      name={name}
      mark={isHere ? t("account.this-browser") : undefined}
      verbs={isHere ? undefined : (
        <button
          type="button"
          class="button"
          disabled={isBusy}
          aria-label={t("account.sign-out-named", { name })}
          onClick={end}
        >
          {t("account.sign-out")}
        </button>
      )}
    >
      <p class="muted">{facts.join(" · ")}</p>
    </AccountRow>
  );
}

function nameOf({ browser, system }: Browser): string {
  if (browser && system) return t("account.browser-on", { browser, system });
  return browser || system || t("account.browser-unnamed");
}
