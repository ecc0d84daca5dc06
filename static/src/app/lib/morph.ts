// Makes what is shown look like what was rendered anew, touching nothing that is equal.

const HTML = "http://www.w3.org/1999/xhtml";

/** Make `from` look like `to`, keeping every node that is equal: a selection in an unchanged place survives. Returns what stands there now. */
export function morph(from: Node, to: Node): Node {
  if (from.isEqualNode(to)) return from;
  if (from instanceof Text && to instanceof Text) {
    from.data = to.data;
    return from;
  }
  // A formula is replaced as a whole: its styles may be copied, but the page's policy forbids to write such an attribute.
  if (
    !(from instanceof Element) || !(to instanceof Element) || from.nodeName !== to.nodeName ||
    from.namespaceURI !== HTML
  ) {
    (from as ChildNode).replaceWith(to);
    return to;
  }
  morphAttributes(from, to);
  const old = [...from.childNodes];
  const fresh = [...to.childNodes];
  fresh.forEach((child, index) => (index < old.length ? morph(old[index], child) : from.append(child)));
  old.slice(fresh.length).forEach((child) => child.remove());
  return from;
}

/** Neighbours in a parent: `old` become `fresh`, before `end`; what is equal is not touched. Returns what stands there now. */
export function morphList(
  parent: Element,
  old: readonly Node[],
  fresh: readonly Node[],
  end: Node | null = null,
): Node[] {
  const kept = old.slice(0, fresh.length).map((node, index) => morph(node, fresh[index]));
  old.slice(fresh.length).forEach((node) => (node as ChildNode).remove());
  const added = fresh.slice(kept.length);
  for (const node of added) parent.insertBefore(node, end);
  return [...kept, ...added];
}

function morphAttributes(from: Element, to: Element): void {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !isKept(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
}

/** What a person toggled stays, and what was found out about its width. */
const isKept = (element: Element, name: string): boolean =>
  name.startsWith("data-keep") ||
  (element.hasAttribute("data-keep-wide") && ["tabindex", "role", "aria-label"].includes(name));
