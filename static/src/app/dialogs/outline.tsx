// What was asked in a conversation, from its beginning: a list that leads to each question.

import { useEffect, useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutMarkup } from "../lib/markup.ts";
import { type Api, messageOf } from "../net/api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { fromPage } from "../store/path.ts";
import { textOf } from "../store/text_of.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "../ui/problem.tsx";

interface Asked {
  id: string;
  text: string;
  at: string;
}

const PAGE = 200; // of the API
const MOST_PAGES = 10; // further up one searches
const SHOWN = 140;

/** The questions of the shown path, the oldest first. `take` gets what is known so far after each page. */
async function readQuestions(api: Api, instanceId: string, take: (asked: Asked[], isAll: boolean) => void) {
  let asked: Asked[] = [];
  let before: string | undefined;
  for (let page = 0; page < MOST_PAGES; page++) {
    const { messages, hasMore } = fromPage(await api.messages(instanceId, { limit: PAGE, before }));
    const found = messages.filter(({ role }) => role === "user").map((message) => ({
      id: message.id,
      text: withoutMarkup(textOf(message)).replace(/\s+/g, " ").trim(),
      at: message.createdAt ?? "",
    }));
    asked = [...found, ...asked];
    before = messages[0]?.id;
    take(asked, !hasMore);
    if (!hasMore || !before) return;
  }
}

export function Outline({ api, instanceId, current, close }: DialogProps<"outline">) {
  const [asked, setAsked] = useState<readonly Asked[]>([]);
  const [state, setState] = useState<"reading" | "all" | "cut">("reading");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    readQuestions(api, instanceId, (found, isAll) => {
      setAsked(found);
      setState(isAll ? "all" : "cut");
    }).catch((error) => setProblem(messageOf(error)));
  }, []);
  return (
    <Dialog title={t("find.outline")} close={close} isWide>
      {state === "reading" && !problem && <p class="muted">{t("common.loading")}</p>}
      {state === "cut" && <p class="muted">{t("find.outline-cut")}</p>}
      <Problem text={problem} />
      <ol class="outline">
        {asked.map(({ id, text, at }) => (
          <li key={id}>
            <button
              type="button"
              class="command"
              title={fullTime(at)}
              aria-current={id === current ? "true" : undefined}
              onClick={() => close(id)}
            >
              <span dir="auto">{text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text || t("find.no-words")}</span>
            </button>
          </li>
        ))}
      </ol>
    </Dialog>
  );
}
