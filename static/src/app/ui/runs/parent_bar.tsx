// Above a conversation in which an agent works for another one: the way back to that. Loaded when needed.

import { useEffect, useState } from "preact/hooks";
import { t } from "../../lib/i18n.ts";
import { useApp } from "../context.ts";
import { FollowLink } from "../follow_link.tsx";
import { Text } from "../text.tsx";

export function ParentBar({ id }: { id: string }) {
  const app = useApp();
  const [title, setTitle] = useState(() => app.list.find(id)?.title ?? "");
  useEffect(() => {
    let isHere = true;
    app.api.instance(id).then((found) => isHere && setTitle(found.title ?? ""), () => {}); // the way leads there without it
    return () => void (isHere = false);
  }, [id]);
  const link = (
    <FollowLink
      href={app.router.address({ page: "conversation", id, place: null })}
      dir="auto"
      go={() => app.place.open(id)}
    >
      {title || t("conversation.another")}
    </FollowLink>
  );
  return (
    <p id="parent" class="place">
      <span>
        <Text id="runs.part-of" title={link} />
      </span>
    </p>
  );
}
