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
      <p>
        <input
          ref={input}
          type="text"
          name="title"
          maxLength={longest}
          required
          aria-label={label}
          autocomplete="off"
          dir="auto"
          defaultValue={value}
        />
      </p>
    </Dialog>
  );
}
