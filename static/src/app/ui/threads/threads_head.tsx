// Above a list of threads: whose they are, a new one, and the way back to all conversations. Loaded when needed.

import { t } from "../../lib/i18n.ts";
import { follow } from "../../lib/store.ts";
import { useApp } from "../context.ts";
import { FollowLink } from "../follow_link.tsx";
import { Icon, IconButton } from "../icon.tsx";

export function ThreadsHead({ field }: { field: { current: HTMLInputElement | null } }) {
  const app = useApp();
  const { desk, rootId } = follow(app.threads);
  if (desk) follow(desk);
  const leave = () => {
    app.list.showBelow("");
    field.current?.focus();
  };
  return (
    <div id="threads-head" class="threads-head">
      <button type="button" class="quiet" onClick={leave}>
        <Icon name="back" />
        {t("list.all")}
      </button>
      <div class="threads-line">
        <h2>
          <FollowLink
            href={app.router.address({ page: "conversation", id: rootId, place: null })}
            aria-label={t("threads.of", { title: desk?.title ?? "" })}
            dir="auto"
            go={() => app.place.open(rootId)}
          >
            {desk?.title}
          </FollowLink>
        </h2>
        <IconButton icon="plus" label={t("threads.new")} disabled={!desk} onClick={() => desk?.create()} />
      </div>
      {desk?.error && <p class="is-error" role="alert">{desk.error}</p>}
    </div>
  );
}
