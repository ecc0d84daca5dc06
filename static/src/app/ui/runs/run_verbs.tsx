// What a person can do about an agent that works for a conversation: go into it, and stop it.

import { useState } from "preact/hooks";
import { t } from "../../lib/i18n.ts";
import { useApp } from "../context.ts";
import { FollowLink } from "../follow_link.tsx";

interface Props {
  name: string;
  childId: string | null | undefined;
  /** Nothing where it cannot be stopped. */
  stop: (() => Promise<void>) | null;
  class: string;
}

export function RunVerbs({ name, childId, stop, class: className }: Props) {
  const app = useApp();
  const [isBusy, setBusy] = useState(false);
  if (!childId && !stop) return null;
  const press = async () => {
    setBusy(true);
    try {
      await stop?.();
    } catch (error) {
      app.notices.fail(error);
    }
    setBusy(false);
  };
  return (
    <p class={className}>
      {childId && (
        <FollowLink
          class="quiet"
          href={app.router.address({ page: "conversation", id: childId, place: null })}
          go={() => app.place.open(childId)}
        >
          {t("runs.open")}
        </FollowLink>
      )}
      {stop && (
        <button type="button" class="quiet" aria-label={t("runs.stop-one", { name })} disabled={isBusy} onClick={press}>
          {t("runs.stop")}
        </button>
      )}
    </p>
  );
}
