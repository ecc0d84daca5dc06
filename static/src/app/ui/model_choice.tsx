// The models that a site allows for an agent, with what they cost and can do, and the parameters of the chosen one.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Conversation } from "../store/conversation.ts";
import { type ModelFacts, NO_CHOICE } from "../store/models.ts";
import type { ModelChoice } from "../store/types.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { EffortChoice, Parameters } from "./model_parameters.tsx";
import { modelFacts } from "./model_facts.ts";

interface ChoiceProps {
  conversation: Conversation;
  offered: readonly ModelFacts[];
  close: () => void;
}

export function Choice({ conversation, offered, close }: ChoiceProps) {
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
    app.announcer.say(t("choice.chosen", { model: model.title }));
    close();
    app.models.then?.();
  };
  return (
    <>
      {instance.modelNotice && <p class="picker-note is-warning" role="note">{instance.modelNotice}</p>}
      {error && <p class="picker-note is-error" role="alert">{error}</p>}
      <div class="picker-list" role="radiogroup" aria-label={t("choice.model")}>
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
          {model.is_default && <span class="picker-tag">{t("choice.default")}</span>}
        </span>
        {facts.map((fact) => <span class="picker-about" key={fact}>{fact}</span>)}
      </span>
      {isChosen && <Icon name="check" />}
    </button>
  );
}
