// Views that are drawn again only when what they are given differs, however often the view around them is drawn.

import { Component, type ComponentChild, type ComponentType, h } from "preact";

/** The same view, skipped while all of its properties are the same objects. Signals that it reads draw it all the same. */
export function memo<Props extends object>(View: ComponentType<Props>): ComponentType<Props> {
  return class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      return isOther(this.props, next);
    }

    override render(): ComponentChild {
      return h(View, this.props);
    }
  };
}

function isOther(one: object, other: object): boolean {
  const [left, right] = [one, other] as Record<string, unknown>[];
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...names].some((name) => left[name] !== right[name]);
}
