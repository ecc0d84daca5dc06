// What lies over the page while something is asked.

import { follow } from "../lib/store.ts";
import { useApp } from "./context.ts";

/** All open dialogs. */
export function DialogHost() {
  const { open } = follow(useApp().dialogs);
  return <>{open.map(({ id, view: View, props }) => <View key={id} {...props} />)}</>;
}
