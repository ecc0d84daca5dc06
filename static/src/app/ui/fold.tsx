// A line that opens. Its body is made when it is opened first, and stays.

import type { ComponentChildren, DetailsHTMLAttributes } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

type Props = Omit<DetailsHTMLAttributes<HTMLDetailsElement>, "children" | "icon" | "label"> & {
  icon: string;
  label: ComponentChildren;
  /** A short value beside the label. */
  hint?: ComponentChildren;
  /** How it stands, at the end of the line. */
  note?: ComponentChildren;
  bodyClass?: string;
  /** How it stands at first. */
  isOpen?: boolean;
  /** It was opened or closed. */
  onOpen?: (isOpen: boolean) => void;
  children: () => ComponentChildren;
};

export function Fold(
  { icon, label, hint, note, bodyClass, isOpen = false, onOpen, class: className, children, ...props }: Props,
) {
  const [wasOpened, setOpened] = useState(isOpen);
  const onToggle = (event: Event) => {
    const { open } = event.currentTarget as HTMLDetailsElement;
    if (open) setOpened(true);
    onOpen?.(open);
  };
  return (
    <details class={`fold ${className ?? ""}`.trim()} open={isOpen} onToggle={onToggle} {...props}>
      <summary>
        <Icon name={icon} />
        <span class="fold-label">{label}</span>
        {hint
          ? (
            <span class="fold-hint">
              <bdi>{hint}</bdi>
            </span>
          )
          : null}
        <span class="fold-note">{note}</span>
        <Icon name="chevron" />
      </summary>
      <div class={`fold-body ${bodyClass ?? ""}`.trim()}>{wasOpened && children()}</div>
    </details>
  );
}
