// The handle of a message that waits: it is dragged among the others, or moved by the arrow keys.

import { useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { IconButton } from "./icon.tsx";

/** Rows of messages that wait, as they stand. */
const waiting = (): HTMLElement[] =>
  [...document.querySelectorAll<HTMLElement>(".message.is-pending")].filter((row) => row.querySelector(".grip"));

const middle = (row: HTMLElement): number => {
  const { top, height } = row.getBoundingClientRect();
  return top + height / 2;
};

/** `move`: by how many places, down or up; resolves when the order is stored and shown. */
export function Grip({ move }: { move: (by: number) => Promise<void> }) {
  const grip = useRef<HTMLButtonElement>(null);
  const start = useRef<number | null>(null);
  const row = () => grip.current!.closest<HTMLElement>(".message")!;
  const go = async (by: number) => {
    if (!by) return;
    await move(by);
    grip.current?.focus(); // a row that moves loses the focus
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    void go(by);
  };
  const onPointerDown = (event: PointerEvent) => {
    grip.current!.setPointerCapture(event.pointerId);
    start.current = event.clientY;
    row().classList.add("is-dragged");
  };
  const onPointerMove = (event: PointerEvent) => {
    if (start.current !== null) row().style.setProperty("translate", `0 ${event.clientY - start.current}px`);
  };
  const end = (event: PointerEvent, isDropped: boolean) => {
    if (start.current === null) return;
    const rows = waiting();
    const at = rows.indexOf(row());
    const above = rows.filter((other) => other !== row() && middle(other) < event.clientY).length;
    start.current = null;
    row().classList.remove("is-dragged");
    row().style.removeProperty("translate");
    if (isDropped) void go(above - at);
  };
  return (
    <IconButton
      class="grip"
      icon="grip"
      label={t("message.move")}
      buttonRef={grip}
      onKeyDown={onKeyDown}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={(event) => end(event, true)}
      onPointerCancel={(event) => end(event, false)}
    />
  );
}
