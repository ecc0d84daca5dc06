// Notices at the foot of the page, and the region that speaks.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { useApp } from "./context.ts";
import { IconButton } from "./icon.tsx";
import { lazy } from "./lazy.tsx";

const LimitNotes = lazy(async () => (await import("../later/views.ts")).LimitNotes);

export function NoticeRegion() {
  const { limits, notices } = useApp();
  follow(notices);
  return (
    <div id="notices" class="notices" role="status">
      {follow(limits).items.length > 0 && <LimitNotes />}
      {notices.items.map(({ id, text, action }) => (
        <div class="notice" key={id}>
          <p>{text}</p>
          {action && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                notices.close(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={t("common.dismiss")} onClick={() => notices.close(id)} />
        </div>
      ))}
    </div>
  );
}

export function LiveRegion() {
  const { lines } = follow(useApp().announcer);
  return (
    <div id="live" class="visually-hidden" aria-live="polite" aria-atomic="false">
      {lines.map(({ id, text }) => <p key={id}>{text}</p>)}
    </div>
  );
}
