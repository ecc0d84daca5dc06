// "2 / 3": the versions of a message, and the way from one to the next.

import { useEffect } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { Message } from "../store/types.ts";
import { IconButton } from "./icon.tsx";
import type { Parts } from "./parts_context.ts";
import type { Step } from "./reader.ts";

export function Siblings({ context: { app, reader }, message }: { context: Parts; message: Message }) {
  useEffect(() => reader.focusSwitched());
  const { siblings } = message;
  const at = siblings.indexOf(message.id);
  const values = { number: at + 1, count: siblings.length };
  const go = (step: Step) => () => {
    const id = siblings[step === "previous" ? at - 1 : at + 1];
    reader.switchTo(id, step); // the other version may be drawn before the answer to the request is there
    app.selectSibling(id);
  };
  return (
    <span class="siblings" role="group" aria-label={t("message.version-of", values)}>
      <IconButton
        icon="left"
        label={t("message.version-before")}
        data-step="previous"
        disabled={at <= 0}
        onClick={go("previous")}
      />
      <span class="sibling-count">{t("message.version-count", values)}</span>
      <IconButton
        icon="right"
        label={t("message.version-after")}
        data-step="next"
        disabled={at >= siblings.length - 1}
        onClick={go("next")}
      />
    </span>
  );
}
