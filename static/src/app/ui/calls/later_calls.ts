// What calls of tools and runs of other agents show when they are opened, and the questions that they ask.

import "../../messages/later.ts"; // before any of the views

export { ArgumentsForm } from "../arguments_form.tsx";
export { InnerQuestions } from "../inner_questions.tsx";
export { Question } from "../question.tsx";
export { ParentBar } from "../runs/parent_bar.tsx";
export { LooseRuns, RunCards } from "../runs/run_cards.tsx";
export { ToolBody } from "./tool_body.tsx";
