// A question for a name or a title.

import { useEffect, useRef } from "preact/hooks";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

const LONGEST = 100;

export function AskName({ title, label, confirm, value, longest = LONGEST, close }: DialogProps<"ask-name">) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current!.select(), []);
  const submit = () => {
    const name = input.current!.value.trim();
    if (name) close(name);
  };
  return (
    <Dialog
      title={title}
      actions={<button type="submit" class="button is-primary">{confirm}</button>}
      onSubmit={submit}
      close={close}
    >
      <label>
        <span class="field-label">{label}</span>
        <input
          ref={input}
          type="text"
          name="title"
          maxLength={longest}
          required
          autocomplete="off"
          dir="auto"
          defaultValue={value}
        />
      </label>
    </Dialog>
  );
}
