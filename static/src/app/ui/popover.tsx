// Menus and other popovers beside the button that opens them: the browser's own popover element, with arrow keys.

import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

/** Put a popover below its button, inside the window; on the side where the text begins. */
export function placeBeside(popover: HTMLElement, button: HTMLElement): void {
  const place = button.getBoundingClientRect();
  const isRightToLeft = getComputedStyle(button).direction === "rtl";
  const wanted = isRightToLeft ? place.right - popover.offsetWidth : place.left;
  const left = Math.min(Math.max(8, wanted), innerWidth - popover.offsetWidth - 8);
  const below = place.bottom + 4;
  const hasRoom = below + popover.offsetHeight <= innerHeight - 8;
  const top = hasRoom ? below : Math.max(8, place.top - popover.offsetHeight - 4);
  popover.style.setProperty("left", `${Math.max(8, left)}px`);
  popover.style.setProperty("top", `${top}px`);
}

/** Arrow keys, Home and End among elements. */
export function moveFocus(event: KeyboardEvent, elements: HTMLElement[]): void {
  if (/^(Home|End)$/.test(event.key) && (event.target as HTMLElement).tagName === "INPUT") return; // keys of the field
  const last = elements.length - 1;
  const at = elements.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at >= last ? 0 : at + 1, ArrowUp: at <= 0 ? last : at - 1, Home: 0, End: last }[event.key];
  if (to === undefined || last < 0) return;
  event.preventDefault();
  elements[to].focus();
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { "aria-label"?: string; "data-action"?: string };

interface PopoverProps {
  /** What the popover is called. */
  label: string;
  role: "menu" | "dialog";
  button: ButtonProps & { children: ComponentChildren };
  /** Content, made while it is open only; `close` puts it away and gives the focus back to the button. */
  children: (close: () => void) => ComponentChildren;
  class?: string;
  /** Called when the button opens it. */
  onOpen?: () => void;
  /** Loads the content before it is shown: where it cannot be loaded, the content shows that itself. */
  prepare?: () => Promise<void>;
}

/** A button and the popover that it opens. The content exists while it is open. */
export function Popover({ label, role, button, children, class: className, onOpen, prepare }: PopoverProps) {
  const [isOpen, setOpen] = useState(false);
  const buttonElement = useRef<HTMLButtonElement>(null);
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen || !element.current || !buttonElement.current) return;
    const [popover, opener] = [element.current, buttonElement.current];
    popover.showPopover();
    placeBeside(popover, opener);
    const sizes = new ResizeObserver(() => placeBeside(popover, opener)); // what opens in it makes it taller
    sizes.observe(popover);
    const first = (selector: string) => element.current!.querySelector<HTMLElement>(selector);
    const chosen = role === "dialog" ? first("[autofocus]") ?? first("[aria-current], [aria-checked=true]") : null;
    (chosen ?? first("[role^=menuitem], button, a, input, select"))?.focus();
    return () => sizes.disconnect();
  }, [isOpen]);
  const close = () => {
    element.current?.hidePopover();
    buttonElement.current?.focus();
  };
  const wasOpen = useRef(false); // when the pointer went down: the browser has closed it before the click arrives
  const toggle = async () => {
    const isClosing = isOpen || wasOpen.current;
    wasOpen.current = false;
    if (!isClosing) onOpen?.();
    if (!isClosing && prepare) await prepare().catch(() => {});
    setOpen(!isClosing);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape") event.stopPropagation(); // the browser closes the popover: nothing around it
    const items = [...element.current!.querySelectorAll<HTMLElement>("[role^=menuitem], [data-option]")];
    if (items.length) moveFocus(event, items);
  };
  return (
    <>
      <button
        type="button"
        aria-haspopup={role}
        aria-expanded={isOpen}
        {...button}
        ref={buttonElement}
        onPointerDown={() => wasOpen.current = isOpen}
        onClick={toggle}
      />
      {isOpen && (
        <div
          ref={element}
          class={`menu ${className ?? ""}`.trim()}
          popover="auto"
          role={role}
          aria-label={label}
          onKeyDown={onKeyDown}
          onToggle={(event) => event.newState === "closed" && setOpen(false)}
        >
          {children(close)}
        </div>
      )}
    </>
  );
}

/** A command of a menu: it runs, or is a link to something to save. */
export interface MenuEntry {
  icon: string;
  label: string;
  run?: () => unknown;
  href?: string;
  /** A line between this and the one before. */
  isApart?: boolean;
  isDanger?: boolean;
}

/** A button with a menu of commands. `entries` is asked each time the menu opens. */
export function MenuButton({ label, button, entries }: {
  label: string;
  button: ButtonProps & { children: ComponentChildren };
  entries: () => MenuEntry[];
}) {
  return (
    <Popover label={label} role="menu" button={button}>
      {(close) => entries().map((entry) => <Entry key={entry.label} {...entry} close={close} />)}
    </Popover>
  );
}

function Entry({ icon, label, run, href, isApart, isDanger, close }: MenuEntry & { close: () => void }) {
  const className = [isApart && "is-apart", isDanger && "is-danger"].filter(Boolean).join(" ") || undefined;
  if (href) {
    return (
      <a role="menuitem" class={className} href={href} download="" tabIndex={-1} onClick={() => setTimeout(close)}>
        <Icon name={icon} />
        {label}
      </a>
    );
  }
  const choose = () => {
    close();
    run?.();
  };
  return (
    <button type="button" role="menuitem" class={className} tabIndex={-1} onClick={choose}>
      <Icon name={icon} />
      {label}
    </button>
  );
}
