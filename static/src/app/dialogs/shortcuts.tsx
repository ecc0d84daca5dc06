// The list of keys.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

interface Shortcut {
  keys: string;
  does: MessageKey;
}

const SHORTCUTS: readonly Shortcut[] = [
  { keys: "Enter", does: "keys.send" },
  { keys: "Shift+Enter", does: "keys.break" },
  { keys: "↑", does: "keys.edit" },
  { keys: "Esc", does: "keys.stop" },
  { keys: "Ctrl+K", does: "keys.search" },
  { keys: "Ctrl+F", does: "keys.find" },
  { keys: "Ctrl+P", does: "keys.print" },
  { keys: "Ctrl+Shift+O", does: "keys.new" },
  { keys: "Ctrl+B", does: "keys.sidebar" },
  { keys: "X", does: "keys.select" },
  { keys: "?", does: "keys.help" },
];

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);

export function Shortcuts({ close }: DialogProps<"shortcuts">) {
  return (
    <Dialog title={t("keys.title")} close={close}>
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
