// A limit that was reached, in words: what it is, how long it lasts, and where to see what is left. The same everywhere.

import { useEffect, useState } from "preact/hooks";
import { countdown } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Limit } from "../store/types.ts";
import { useApp } from "./context.ts";
import { FollowLink } from "./follow_link.tsx";
import { IconButton } from "./icon.tsx";

const USAGE = { page: "settings", section: "usage" } as const;

/** `isMessage`: it keeps a message from being sent, which goes out by itself. */
export function LimitNote({ limit, isMessage = false }: { limit: Limit; isMessage?: boolean }) {
  const app = useApp();
  return (
    <p class="limit-note" data-limit={limit.passes ? "passes" : "stays"}>
      <bdi>{limit.text}</bdi> {limit.passes
        ? <Countdown endsAt={limit.endsAt} isMessage={isMessage} />
        : isMessage && <span>{t("limits.message-waits")}</span>}{" "}
      <FollowLink href={app.router.address(USAGE)} go={() => app.place.showSettings(USAGE.section)}>
        {t("limits.see")}
      </FollowLink>
    </p>
  );
}

/** It counts by itself, and is not read out each second. */
function Countdown({ endsAt, isMessage }: { endsAt: number; isMessage: boolean }) {
  const [now, setNow] = useState(() => Date.now());
  const left = Math.max(0, endsAt - now);
  useEffect(() => {
    if (!left) return;
    const timer = setTimeout(() => setNow(Date.now()), left % 1_000 || 1_000);
    return () => clearTimeout(timer);
  }, [left]);
  if (!left && !isMessage) return <span>{t("limits.now")}</span>;
  return (
    <span role="timer" aria-live="off">
      {t(isMessage ? "limits.message-goes" : "limits.try-in", { time: countdown(left) })}
    </span>
  );
}

/** Those that nothing on the page shows where it belongs. */
export function LimitNotes() {
  const { limits } = useApp();
  return (
    <>
      {follow(limits).items.map((limit) => (
        <div class="notice" key={limit.text}>
          <LimitNote limit={limit} />
          <IconButton icon="close" label={t("limits.dismiss")} onClick={() => limits.close(limit)} />
        </div>
      ))}
    </>
  );
}
