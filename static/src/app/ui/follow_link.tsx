// Links that the page follows by itself; with a modifier key, or in a new tab, they are ordinary links.

import type { AnchorHTMLAttributes, Ref } from "preact";

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & {
  href: string;
  go: () => void;
  linkRef?: Ref<HTMLAnchorElement>;
};

/** Whether the browser is to follow the link itself. */
export const isForBrowser = (event: MouseEvent): boolean =>
  event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button !== 0;

export function FollowLink({ go, children, linkRef, ...props }: Props) {
  const onClick = (event: MouseEvent) => {
    if (isForBrowser(event)) return;
    event.preventDefault();
    go();
  };
  return <a {...props} ref={linkRef} onClick={onClick}>{children}</a>;
}
