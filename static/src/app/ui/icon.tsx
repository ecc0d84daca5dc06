// Symbols of the sprite in the page, and the buttons that show only one.

import type { ButtonHTMLAttributes, Ref } from "preact";

/** Symbols that point along the line of reading: they are mirrored where it runs from right to left. */
const DIRECTED = new Set(["back", "chevron", "left", "out", "panel", "right", "sidebar"]);

/** One symbol, hidden from assistive technology: what it stands for is said by the control around it. */
export function Icon({ name }: { name: string }) {
  return (
    <svg class={DIRECTED.has(name) ? "icon is-directed" : "icon"} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, "icon" | "label"> & {
  icon: string;
  label: string;
  buttonRef?: Ref<HTMLButtonElement>;
  disabled?: boolean;
};

/** A button that shows a symbol and is called `label`. */
export function IconButton({ icon, label, buttonRef, class: className, ...props }: ButtonProps) {
  return (
    <button
      type="button"
      class={`icon-button ${className ?? ""}`.trim()}
      aria-label={label}
      title={label}
      ref={buttonRef}
      {...props}
    >
      <Icon name={icon} />
    </button>
  );
}
