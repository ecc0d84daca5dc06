// Which model answers next, and a choice among those that the site allows for this agent.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Conversation } from "../store/conversation.ts";
import { type ModelFacts, NO_CHOICE } from "../store/models.ts";
import type { ModelChoice } from "../store/types.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { EffortChoice, Parameters } from "./model_parameters.tsx";
import { modelFacts } from "./model_facts.ts";
import { Popover } from "./popover.tsx";

export function ModelPicker() {
  const app = follow(useApp());
  const { conversation } = app;
  const { instance } = follow(conversation);
  const models = follow(app.models);
  useEffect(() => {
    if (instance.id && !instance.model) models.learn(conversation);
  }, [instance.id]);
  const offered = models.of(instance.agent);
  const name = instance.model || instance.modelChoice?.model || "";
  const shown = models.find(instance.agent, name)?.title || shortName(name) || siteModel(app.boot.model);
  const label = <span id="model-name" dir="auto">{shown}</span>;
  if (!offered.length || instance.isReadOnly) {
    return (
      <p class="model-shown" title={t("models.shown")}>
        <span class="visually-hidden">{t("models.model")}:</span>
        {label}
      </p>
    );
  }
  return (
    <Popover
      label={t("models.choose")}
      role="dialog"
      class="picker model-picker"
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

interface ChoiceProps {
  conversation: Conversation;
  offered: readonly ModelFacts[];
  close: () => void;
}

function Choice({ conversation, offered, close }: ChoiceProps) {
  const app = useApp();
  const { instance } = follow(conversation);
  const [error, setError] = useState("");
  const choice = instance.modelChoice ?? NO_CHOICE;
  const effective = instance.model || choice.model || "";
  const present = offered.find((model) => model.name === effective) ?? offered.find((model) => model.is_default);
  const choose = async (wanted: ModelChoice): Promise<boolean> => {
    setError("");
    try {
      await app.models.choose(conversation, wanted);
      app.list.patch(conversation.instance.id, { modelChoice: conversation.instance.modelChoice });
      return true;
    } catch (failure) {
      setError((failure as Error).message);
      return false;
    }
  };
  const pick = async (model: ModelFacts) => {
    if (!(await choose(fitting(choice, model)))) return;
    app.announcer.say(t("models.chosen", { model: model.title }));
    close();
  };
  return (
    <>
      {instance.modelNotice && <p class="picker-note is-warning" role="note">{instance.modelNotice}</p>}
      {error && <p class="picker-note is-error" role="alert">{error}</p>}
      <div class="picker-list" role="radiogroup" aria-label={t("models.model")}>
        {offered.map((model) => (
          <Offer
            key={model.name}
            model={model}
            isChosen={model === present}
            choose={() => pick(model)}
          />
        ))}
      </div>
      {present && <EffortChoice model={present} choice={choice} choose={choose} />}
      {present && <Parameters model={present} choice={choice} choose={choose} />}
    </>
  );
}

/** The choice with another model: what that one does not take goes back to the default. */
function fitting(choice: ModelChoice, model: ModelFacts): ModelChoice {
  const takes = (name: string) => model.parameters.includes(name);
  const knows = model.reasoning_efforts.includes(choice.reasoning_effort ?? "");
  return {
    model: model.is_default ? null : model.name,
    reasoning_effort: knows ? choice.reasoning_effort : null,
    temperature: takes("temperature") ? choice.temperature : null,
    top_p: takes("top_p") ? choice.top_p : null,
    max_output_tokens: takes("max_output_tokens") ? choice.max_output_tokens : null,
  };
}

function Offer({ model, isChosen, choose }: { model: ModelFacts; isChosen: boolean; choose: () => void }) {
  const facts = modelFacts(model);
  return (
    <button
      type="button"
      class="picker-option"
      role="radio"
      aria-checked={isChosen}
      data-option={model.name}
      tabIndex={isChosen ? 0 : -1}
      title={model.name}
      onClick={choose}
    >
      <span class="picker-text">
        <span class="picker-title">
          <span dir="auto">{model.title}</span>
          {model.is_default && <span class="picker-tag">{t("models.default")}</span>}
        </span>
        {facts.map((fact) => <span class="picker-about" key={fact}>{fact}</span>)}
      </span>
      {isChosen && <Icon name="check" />}
    </button>
  );
}
