// What follows from the model that answers: a small one says that it is small, a missing one says what to set.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { recall, remember } from "../lib/storage.ts";
import { useApp } from "./context.ts";
import { IconButton } from "./icon.tsx";
import { Text } from "./text.tsx";

export function ModelBanner() {
  const { model } = useApp().boot;
  const [isDismissed, setDismissed] = useState(recall("small-model-known") === model?.name);
  if (!model) return null;
  if (model.kind === "none") {
    return (
      <div id="banner" class="banner is-missing" role="note" aria-label={t("models.about")}>
        <div>
          <p>
            <strong>{t("models.none-title")}</strong>
          </p>
          <p>{model.hint || t("models.how-to-connect")}</p>
          <p class="muted">{t("models.none-kept")}</p>
        </div>
      </div>
    );
  }
  if (!model.is_small || isDismissed) return null;
  const dismiss = () => {
    remember("small-model-known", model.name);
    setDismissed(true);
  };
  return (
    <div id="banner" class="banner is-small" role="note" aria-label={t("models.about")}>
      <div>
        <p>
          <Text id="models.small" model={<strong>{model.name}</strong>} />
        </p>
        <details>
          <summary>{t("models.connect-better")}</summary>
          <p>{model.hint || t("models.how-to-connect")}</p>
        </details>
      </div>
      <IconButton icon="close" label={t("common.dismiss")} onClick={dismiss} />
    </div>
  );
}
