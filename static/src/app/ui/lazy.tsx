// Views that are loaded when they are first drawn, so that the first script is small.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";

/** A view that is loaded when it is drawn; `load` loads it before, for what must be there at once. */
export type LazyView<Props> = ComponentType<Props> & { load: () => Promise<void> };

/** A view that stands for another until that has been loaded. A load that fails can be tried again. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): LazyView<Props> {
  let loaded: ComponentType<Props> | null = null;
  const loadOnce = async () => {
    loaded ??= await pending(load());
  };
  function Lazy(props: Props) {
    const [state, setState] = useState<"loading" | "loaded" | "failed">(loaded ? "loaded" : "loading");
    useEffect(() => {
      if (state === "loading") loadOnce().then(() => setState("loaded"), () => setState("failed"));
    }, [state]);
    const View = loaded;
    if (View) return <View {...props} />;
    if (state !== "failed") return null;
    return (
      <p class="is-error" role="alert">
        {t("common.part-not-loaded")}{" "}
        <button type="button" class="quiet" onClick={() => setState("loading")}>{t("common.try-again")}</button>
      </p>
    );
  }
  return Object.assign(Lazy, { load: loadOnce });
}
