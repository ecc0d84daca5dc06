// The section "Shared links": all links for readers that work, of all conversations.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import { type ShareLink, SharesApi } from "../net/shares_api.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { ShareList } from "../ui/share_list.tsx";

export function LinksSection() {
  const app = useApp();
  const calls = useRef(new SharesApi(app.api)).current;
  const [links, setLinks] = useState<readonly ShareLink[] | null>(null);
  const [problem, setProblem] = useState("");
  const run = async (change: () => Promise<unknown>) => {
    try {
      setProblem("");
      await change();
      setLinks(await calls.all());
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  useEffect(() => void run(async () => {}), []);
  const revoke = (link: ShareLink) =>
    void run(async () => {
      await calls.revoke(link.id);
      app.announcer.say(t("sharing.revoked"));
    });
  return (
    <>
      <Problem text={problem} />
      {links && (
        <>
          <p class="muted">{t(links.length ? "sharing.links-about" : "sharing.links-none")}</p>
          {links.length > 0 && (
            <ShareList
              links={links}
              hasTitles
              open={(link) => void app.place.open(link.instance_id)}
              revoke={revoke}
            />
          )}
        </>
      )}
    </>
  );
}
