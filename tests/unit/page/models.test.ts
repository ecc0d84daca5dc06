/// <reference lib="deno.ns" />
// What the picker says of a model. Run by test_pure_modules.py.

import "../../../static/src/app/messages/later.ts";
import type { ModelFacts } from "../../../static/src/app/store/models.ts";
import { modelFacts } from "../../../static/src/app/ui/model_facts.ts";

const UNKNOWN: ModelFacts = {
  name: "acme/m",
  title: "m",
  provider: "acme",
  context_tokens: null,
  max_output_tokens: null,
  prices: null,
  reasoning_efforts: [],
  parameters: [],
  inputs: null,
  calls_tools: null,
  reasons: null,
  is_default: false,
};

function says(known: Partial<ModelFacts>, lines: string[]): void {
  const found = JSON.stringify(modelFacts({ ...UNKNOWN, ...known }));
  if (found !== JSON.stringify(lines)) throw new Error(`${found} is not ${JSON.stringify(lines)}`);
}

Deno.test("what is unknown of a model is not in the picker", () => says({}, []));

Deno.test("what is known of a model is in the picker, and what it cannot do too", () => {
  says({ inputs: ["image"], calls_tools: true, reasons: true }, [
    "reads images",
    "uses tools · thinks before it answers",
  ]);
  says({ inputs: [], calls_tools: false, reasons: null }, ["reads text only", "no tools"]);
  says({ context_tokens: 8000, reasons: true }, ["8K tokens of context", "thinks before it answers"]);
});
