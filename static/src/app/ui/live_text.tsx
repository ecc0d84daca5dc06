// Text that grows, in an element that the renderer of text fills by itself.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Source } from "../lib/citations.ts";
import { LiveText as Growing } from "../lib/live_text.ts";

interface Props {
  text: string;
  isLive: boolean;
  /** Called around each change, with a function that makes it. */
  paint: (change: () => void) => void;
  /** What its citations may name. */
  sources?: readonly Source[];
  class?: string;
}

export function LiveText({ text, isLive, paint, sources, class: className = "md" }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const growing = useRef<Growing | null>(null);
  useLayoutEffect(() => {
    const made = growing.current = new Growing(element.current!, paint);
    return () => made.dispose();
  }, []);
  useLayoutEffect(() => growing.current!.update(text, isLive, sources), [text, isLive, sources]);
  return <div class={className} ref={element} />;
}
