// How the line stands, in words, and only when it is not simply there.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { type Connection, SIGNED_OUT } from "../store/connection.ts";
import { useApp } from "./context.ts";

export function ConnectionBar() {
  const connection = follow(useApp().connection);
  const [, tick] = useState(0);
  useEffect(() => {
    if (!connection.isShown) return;
    const timer = setInterval(() => tick((count) => count + 1), 1_000);
    return () => clearInterval(timer);
  }, [connection.isShown]);
  return (
    <div class="connection-place">
      <div id="connection" class="connection" role="status" hidden={!connection.isShown}>
        {connection.isShown && (
          <>
            <span>{textOf(connection)}</span>
            {connection.state === "waiting" && !connection.isOffline && (
              <button
                type="button"
                class="quiet"
                onClick={() => connection.retry()}
              >
                {t("common.try-now")}
              </button>
            )}
            {connection.state === "refused" && connection.refusal.code === SIGNED_OUT && (
              <button
                type="button"
                class="quiet"
                onClick={() => location.reload()}
              >
                {t("common.sign-in-again")}
              </button>
            )}
          </>
        )}
      </div>
    </div>
  );
}

function textOf(connection: Connection): string {
  const { code, reason } = connection.refusal;
  if (connection.state === "refused") {
    return code === SIGNED_OUT
      ? t("common.signed-out")
      : t("common.connection-refused", { reason: reason || t("common.close-code", { code: String(code) }) });
  }
  if (connection.isOffline) return t("common.offline");
  if (connection.state === "waiting") {
    const count = Math.max(1, Math.ceil((connection.retryAt - Date.now()) / 1_000));
    return t("common.connection-lost", { count });
  }
  return t("common.connecting");
}
