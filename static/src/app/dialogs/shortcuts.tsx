// The list of keys.

import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialogs.ts";
import { SHORTCUTS } from "../ui/keys.ts";
import { Dialog } from "./dialog.tsx";

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);

export function Shortcuts({ close }: DialogProps<never>) {
  return (
    <Dialog title={t("common.shortcuts")} close={close}>
      <dl class="shortcuts">
        {SHORTCUTS.map(({ keys, does }) => (
          <div key={keys}>
            <dt>{(IS_MAC ? keys.replace("Ctrl", "⌘") : keys).split("+").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{t(does)}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
