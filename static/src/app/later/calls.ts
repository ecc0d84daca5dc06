// What calls of tools and runs of other agents show when they are opened, and the questions that they ask.

import "../messages/later.ts"; // before any of the views

export { ArgumentsForm } from "../ui/arguments_form.tsx";
export { InnerQuestions } from "../ui/inner_questions.tsx";
export { Question } from "../ui/question.tsx";
export { ParentBar } from "../ui/runs/parent_bar.tsx";
export { LooseRuns, RunCards } from "../ui/runs/run_cards.tsx";
export { ToolBody } from "../ui/calls/tool_body.tsx";
