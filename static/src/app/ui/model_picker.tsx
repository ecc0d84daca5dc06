// Which model answers next, and a choice among those that the site allows for this agent.

import { useEffect } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { Popover } from "./popover.tsx";

const Choice = lazy(async () => (await import("../later/views.ts")).Choice);

export function ModelPicker() {
  const app = useApp();
  follow(app.place);
  const { conversation } = app;
  const { instance } = follow(conversation);
  const models = follow(app.models);
  useEffect(() => {
    if (instance.id && !instance.model) models.learn(conversation);
  }, [instance.id]);
  useEffect(() => {
    if (models.wishes) document.getElementById("choose-model")?.click();
  }, [models.wishes]);
  const offered = models.of(instance.agent);
  const name = instance.model || instance.modelChoice?.model || "";
  const shown = models.find(instance.agent, name)?.title || shortName(name) || siteModel(app.boot.model);
  const label = <span id="model-name" dir="auto">{shown}</span>;
  if (!offered.length || instance.isReadOnly || !isOwn(instance)) {
    return (
      <p class="model-shown" title={t("models.shown")}>
        <span class="visually-hidden">{t("models.model-before")}</span>
        {label}
      </p>
    );
  }
  return (
    <Popover
      label={t("models.choose")}
      role="dialog"
      class="picker model-picker"
      prepare={Choice.load}
      onOpen={() => models.shown()}
      button={{
        id: "choose-model",
        class: "quiet model-button",
        "aria-label": t("models.button", { model: shown }),
        title: t("models.choose"),
        children: (
          <>
            {instance.modelNotice && <Icon name="alert" />}
            {label}
            <Icon name="down-small" />
          </>
        ),
      }}
    >
      {(close) => <Choice conversation={conversation} offered={offered} close={close} />}
    </Popover>
  );
}

/** "gpt-5" of "openai/gpt-5". */
const shortName = (name: string): string => name.slice(name.indexOf("/") + 1);

function siteModel(model: { name: string; kind: string } | null): string {
  return model && model.kind !== "none" ? shortName(model.name) : t("models.none");
}
