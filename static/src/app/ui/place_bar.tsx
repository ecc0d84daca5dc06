// A line under the head that says where one is when that is not simply the conversation: in another version or history, in what
// is temporary or archived, in a fork.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import { useApp } from "./context.ts";
import { keep } from "./conversation_menu.tsx";
import { FollowLink } from "./follow_link.tsx";
import { Text } from "./text.tsx";

export function PlaceBar() {
  const app = useApp();
  follow(app.place);
  const { conversation, notices } = app;
  const { place, instance } = follow(conversation);
  const attempt = (action: () => Promise<unknown>) => () => {
    action().catch(notices.fail);
    document.getElementById("scroller")?.focus({ preventScroll: true }); // the button goes away
  };
  if (place?.isOther) {
    return (
      <p id="place" class="place is-strong">
        <span>{t(place.isForeign ? "conversation.other-history" : "conversation.other-version")}</span>
        {!(instance.isReadOnly && place.isForeign) && (
          <button
            type="button"
            class="quiet"
            onClick={attempt(() => conversation.goOnHere())}
          >
            {t(place.isForeign ? "conversation.switch-history" : "conversation.switch-version")}
          </button>
        )}
        <button type="button" class="quiet" onClick={attempt(() => conversation.backToNewest())}>
          {t("conversation.back-to-newest")}
        </button>
      </p>
    );
  }
  if (instance.isTemporary) {
    return (
      <p id="place" class="place is-strong">
        <span>{t("temporary.about")}</span>
        {instance.id && !instance.parentId && isOwn(instance) && (
          <>
            <button type="button" class="quiet" onClick={() => keep(app, instance)}>{t("temporary.keep")}</button>
            <button type="button" class="quiet" onClick={() => app.conversations.remove(instance)}>
              {t("temporary.delete")}
            </button>
          </>
        )}
      </p>
    );
  }
  if (instance.isArchived) {
    return (
      <p id="place" class="place">
        <span>{t("conversation.is-archived")}</span>
        <button
          type="button"
          class="quiet"
          onClick={attempt(() => app.conversations.setArchived(instance, false))}
        >
          {t("common.restore")}
        </button>
      </p>
    );
  }
  if (!instance.origin) return null;
  const { id, messageId, title } = instance.origin;
  const origin = { messageId, sessionId: "" };
  const link = (
    <FollowLink
      href={app.router.address({ page: "conversation", id, place: origin })}
      dir="auto"
      go={() => app.place.open(id, { place: origin })}
    >
      {title || t("conversation.another")}
    </FollowLink>
  );
  return (
    <p id="place" class="place">
      <span>
        <Text id="conversation.forked-from" title={link} />
      </span>
    </p>
  );
}
