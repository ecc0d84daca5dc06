// What an agent that keeps threads says before one is open. Loaded when needed.

import { t } from "../../lib/i18n.ts";

export function ThreadsWelcome() {
  return (
    <>
      <h2>{t("threads.begin")}</h2>
      <p class="muted">{t("threads.begin-text")}</p>
    </>
  );
}
