// A conversation that is read by a link: what it is, the messages, and the way into a conversation of one's own.

import { useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { SharesApi } from "../net/shares_api.ts";
import type { SharedLink } from "../store/boot.ts";
import { titleOf } from "../store/instances.ts";
import { useApp } from "./context.ts";
import { LiveRegion, NoticeRegion } from "./notices.tsx";
import { Timeline } from "./timeline.tsx";

export function SharedView({ link }: { link: SharedLink }) {
  const { conversation } = useApp();
  return (
    <>
      <a class="skip" href="#scroller">{t("common.skip-to-content")}</a>
      <main class="columns">
        <section id="main" class="main" aria-labelledby="title">
          <header class="main-head">
            <div class="head-title">
              <h1 id="title" dir="auto">{titleOf(conversation.instance)}</h1>
            </div>
            <Continue link={link} />
          </header>
          <p class="shared-about muted" role="note">
            {t("sharing.read-only", { when: fullTime(link.expires_at) })} {without(link)}
          </p>
          <Timeline />
        </section>
        <NoticeRegion />
      </main>
      <LiveRegion />
    </>
  );
}

function without({ tools, files }: SharedLink): string {
  if (tools && files) return "";
  if (!tools && !files) return t("sharing.without");
  return t(tools ? "sharing.without-files" : "sharing.without-tools");
}

function Continue({ link }: { link: SharedLink }) {
  const app = useApp();
  const [isBusy, setBusy] = useState(false);
  if (!link.may_continue) return <a class="button" href={link.sign_in}>{t("sharing.sign-in")}</a>;
  const go = async () => {
    setBusy(true);
    try {
      const { instance_id: id } = await new SharesApi(app.api).continue(link.secret);
      location.assign(app.router.address({ page: "conversation", id, place: null }));
    } catch (error) {
      app.notices.fail(error);
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      class="button is-primary"
      disabled={isBusy}
      title={t("sharing.continue-help")}
      onClick={() => void go()}
    >
      {t("sharing.continue")}
    </button>
  );
}
