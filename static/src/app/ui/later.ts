// Views that the first one does without, as one piece: it is loaded when one of them is needed.

import "../messages/later.ts"; // before any of the views
import { noteLater } from "./lazy.tsx";
import "../lib/look.ts"; // follows changes in other tabs

export { AgentList } from "./agent_list.tsx";
export { ApprovalsPage } from "./approvals_page.tsx";
export { ArgumentsForm } from "./arguments_form.tsx";
export { CommandList } from "./command_list.tsx";
export { Choice } from "./model_choice.tsx";
export { FindBar } from "./find_bar.tsx";
export { Grip } from "./grip.tsx";
export { GuardBar } from "./guard_bar.tsx";
export { HistoriesButton } from "./histories.tsx";
export { LimitNotes } from "./limit_note.tsx";
export { LimitNote } from "./limit_note.tsx";
export { InnerQuestions } from "./inner_questions.tsx";
export { PlanBar } from "./plan_bar.tsx";
export { NextPrice } from "./next_price.tsx";
export { Panel } from "../panels/panel.tsx";
export { Question } from "./question.tsx";
export { ParentBar } from "./runs/parent_bar.tsx";
export { LooseRuns, RunCards } from "./runs/run_cards.tsx";
export { SettingsPage } from "../settings/settings_page.tsx";
export { SelectionBar } from "./selection_bar.tsx";
export { TodoBar } from "./todo_bar.tsx";
export { openPreview } from "../store/open_preview.ts";
export { ThreadsHead } from "./threads/threads_head.tsx";
export { ThreadsWelcome } from "./threads/threads_welcome.tsx";
export { printConversation } from "../store/printing.ts";
export { UndoneBar } from "./undone_bar.tsx";
export { Unpack } from "./unpack.tsx";
export { WorkView } from "./work_page.tsx";
export { SearchFilters } from "./search_filters.tsx";
export { SummaryLine } from "./summary_line.tsx";
export { ToolBody } from "./calls/tool_body.tsx";
export { WelcomeOffers } from "./welcome_offers.tsx";
export { UserMenuItems } from "./user_menu_items.tsx";
export { askAnotherModel, compareAnswers, pressFeedback, savePrompt, showBranches, speak } from "./answer_verbs.ts";
export { install } from "./installed.ts";
export { BackgroundPanel } from "../panels/background.tsx";

noteLater();
