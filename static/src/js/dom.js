// Builds elements without HTML strings, so that nothing written by a person or a model is ever parsed as markup here.

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: h("button", { class: "quiet", onclick }, "Copy"). null and false children and values are left out. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "text") element.textContent = value;
    else if (key === "dataset") Object.assign(element.dataset, value);
    else if (key in PROPERTIES) element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

const PROPERTIES = { value: 1, hidden: 1, disabled: 1, checked: 1, open: 1, tabIndex: 1 };

function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
}

/** One symbol of the sprite in the page, hidden from assistive technology: its button carries the name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** A button that shows only a symbol and is called `label`. */
export function iconButton(name, label, onclick, props = {}) {
  return h(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props },
    icon(name),
  );
}

/**
 * Put exactly these children into the element, keeping those that are already there. What is not wanted goes first: a child
 * that only comes to stand elsewhere is not moved, because a moved one loses the focus.
 */
export function setChildren(element, wanted) {
  const kept = new Set(wanted);
  for (const child of [...element.childNodes]) if (!kept.has(child)) child.remove();
  let cursor = element.firstChild;
  for (const child of wanted) {
    if (child === cursor) cursor = cursor.nextSibling;
    else element.insertBefore(child, cursor);
  }
}

const nameOf = (element) => element.dataset.act ?? element.getAttribute("aria-label") ?? element.textContent;

/** Put new nodes into the element. Who was at one of its buttons is at the new one: the same `data-act`, or the same name. */
export function renew(element, nodes) {
  const name = element.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  element.replaceChildren(...nodes);
  if (name === null) return;
  const same = [...element.querySelectorAll("button:enabled, a")].find((item) => nameOf(item) === name);
  same?.focus({ preventScroll: true });
}

/** Set text only where it differs, so that nothing is announced or repainted for no reason. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Make `from` look like `to`, keeping every node that is equal: a selection in an unchanged place survives. */
export function morph(from, to) {
  if (from.isEqualNode(to)) return from;
  if (from.nodeType === Node.TEXT_NODE && to.nodeType === Node.TEXT_NODE) {
    from.data = to.data;
    return from;
  }
  if (from.nodeType !== Node.ELEMENT_NODE || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return to;
  }
  morphAttributes(from, to);
  const old = [...from.childNodes];
  const fresh = [...to.childNodes];
  fresh.forEach((child, index) => (index < old.length ? morph(old[index], child) : from.append(child)));
  old.slice(fresh.length).forEach((child) => child.remove());
  return from;
}

function morphAttributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !name.startsWith("data-keep")) from.removeAttribute(name); // what a person toggled stays
  }
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
}
