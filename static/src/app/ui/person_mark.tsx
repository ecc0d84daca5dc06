// A person as two letters in a circle, beside the name.

import { initialsOf } from "../store/people.ts";

export function PersonMark({ name }: { name: string }) {
  return <span class="person-mark" aria-hidden="true">{initialsOf(name)}</span>;
}
