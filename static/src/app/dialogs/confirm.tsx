// A question that is answered by yes or no.

import { useRef } from "preact/hooks";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

export function Confirm({ title, text, confirm, isDanger = false, option, close }: DialogProps<"confirm">) {
  const box = useRef<HTMLInputElement>(null);
  const button = <button type="submit" class={isDanger ? "button is-danger" : "button is-primary"}>{confirm}</button>;
  return (
    <Dialog
      title={title}
      isDanger={isDanger}
      actions={button}
      onSubmit={() => close({ isTicked: box.current?.checked ?? false })}
      close={close}
    >
      <p>{text}</p>
      {option && (
        <label class="ticked">
          <input type="checkbox" class="tick" ref={box} />
          <span>{option}</span>
        </label>
      )}
    </Dialog>
  );
}
