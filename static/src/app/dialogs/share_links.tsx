// Links by which others read a conversation up to a message: one is made, those there are can be taken back.

import { useEffect, useRef, useState } from "preact/hooks";
import { copyText } from "../lib/clipboard.ts";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import { type ShareLink, SharesApi, type Ticks } from "../net/shares_api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { titleOf } from "../store/instances.ts";
import { textOf } from "../store/text_of.ts";
import type { Message } from "../store/types.ts";
import { Problem } from "../ui/problem.tsx";
import { ShareList } from "../ui/share_list.tsx";
import { Dialog } from "./dialog.tsx";

const DAYS = [1, 7, 30, 90, 365];
const FIRST_WORDS = 60;
const NOTHING: Ticks = { tools: false, files: false, reasoning: false };
const TICKS = ["tools", "files", "reasoning"] as const;
const LABELS = { tools: "sharing.tools", files: "sharing.files", reasoning: "sharing.reasoning" } as const;

export function ShareLinks({ api, instance, message, close }: DialogProps<"share-links">) {
  const calls = useRef(new SharesApi(api)).current;
  const [links, setLinks] = useState<readonly ShareLink[]>([]);
  const [ticks, setTicks] = useState(NOTHING);
  const [days, setDays] = useState(30);
  const [address, setAddress] = useState("");
  const [isCopied, setCopied] = useState(false);
  const [problem, setProblem] = useState("");
  const run = async (change: () => Promise<unknown>) => {
    try {
      setProblem("");
      await change();
      setLinks(await calls.of(instance.id));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  useEffect(() => void run(async () => {}), []);
  const make = () =>
    run(async () => {
      const { path } = await calls.make(instance.id, { ...ticks, days, message_id: message?.id });
      const made = `${location.origin}${path}`;
      setAddress(made);
      setCopied(await copyText(made));
    });
  const revoke = (link: ShareLink) =>
    void run(async () => {
      await calls.revoke(link.id);
      setAddress("");
    });
  return (
    <Dialog title={t("sharing.title", { title: titleOf(instance) })} close={close} isWide>
      <p>{t("sharing.about")}</p>
      <p class="muted" dir="auto">
        {message ? t("sharing.end", { words: firstWords(message) }) : t("sharing.end-now")}
      </p>
      <ShownAsWell ticks={ticks} choose={setTicks} />
      <div class="share-row">
        <label>
          {t("sharing.days")}
          <select value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
            {DAYS.map((count) => <option key={count} value={count}>{t("sharing.day-count", { count })}</option>)}
          </select>
        </label>
        <button type="button" class="button is-primary" onClick={() => void make()}>{t("sharing.make")}</button>
      </div>
      {address && (
        <p class="people-link" role="status">
          <input type="text" readOnly dir="ltr" aria-label={t("sharing.link")} value={address} />
          <span class="muted">{t(isCopied ? "sharing.copied" : "sharing.once")}</span>
        </p>
      )}
      {links.length > 0 && <ShareList links={links} revoke={revoke} />}
      <Problem text={problem} />
      <p class="muted">{t("sharing.never")}</p>
    </Dialog>
  );
}

function ShownAsWell({ ticks, choose }: { ticks: Ticks; choose: (ticks: Ticks) => void }) {
  return (
    <fieldset class="share-ticks">
      <legend>{t("sharing.private")}</legend>
      {TICKS.map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={ticks[name]}
            onChange={({ currentTarget }) => choose({ ...ticks, [name]: currentTarget.checked })}
          />
          {t(LABELS[name])}
        </label>
      ))}
    </fieldset>
  );
}

function firstWords(message: Message): string {
  const text = textOf(message).replace(/\s+/g, " ").trim();
  return text.length > FIRST_WORDS ? `${text.slice(0, FIRST_WORDS)}…` : text;
}
