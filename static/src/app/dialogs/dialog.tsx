// The frame of all dialogs: the browser's own dialog element, which keeps the focus inside, closes on Esc and gives the focus
// back.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";

interface Props {
  title: string;
  children?: ComponentChildren;
  /** Buttons after "Cancel"; without any, only "Close". */
  actions?: ComponentChildren;
  /** Pressing Enter in a field, or a submit button, calls this. */
  onSubmit?: (event: SubmitEvent) => void;
  close: (answer: null) => void;
  isWide?: boolean;
  /** The focus begins at "Cancel": what is asked cannot be undone. */
  isDanger?: boolean;
}

export function Dialog({ title, children, actions, onSubmit, close, isWide, isDanger }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    const first = dialog.querySelector<HTMLElement>(
      isDanger ? "[data-cancel]" : "[autofocus], input, textarea, select, .dialog-actions button:not([data-cancel])",
    );
    first?.focus();
    return () => dialog.close();
  }, []);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    onSubmit?.(event);
  };
  return (
    <dialog
      ref={element}
      class={isWide ? "dialog is-wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close(null);
      }}
    >
      <form method="dialog" onSubmit={submit}>
        <h2 id={id}>{title}</h2>
        {children}
        <p class="dialog-actions">
          <button type="button" class="button" data-cancel onClick={() => close(null)}>
            {actions ? t("common.cancel") : t("common.close")}
          </button>
          {actions}
        </p>
      </form>
    </dialog>
  );
}
