// Which agent goes on with what is imported.

import { useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialogs.ts";
import type { Agent } from "../store/types.ts";
import { Dialog } from "./dialog.tsx";

interface Props extends DialogProps<string> {
  agents: readonly Agent[];
  current: string;
}

export function ChooseAgent({ agents, current, close }: Props) {
  const select = useRef<HTMLSelectElement>(null);
  return (
    <Dialog
      title={t("choice.import-agent")}
      actions={<button type="submit" class="button is-primary">{t("choice.import-confirm")}</button>}
      onSubmit={() => close(select.current!.value)}
      close={close}
    >
      <p>
        <select ref={select} aria-label={t("common.agent")}>
          {agents.map((agent) => (
            <option key={agent.name} value={agent.name} selected={agent.name === current}>{agent.title}</option>
          ))}
        </select>
      </p>
    </Dialog>
  );
}
