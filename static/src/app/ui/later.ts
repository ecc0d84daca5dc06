// What may be wanted beside any conversation, as one piece: loaded once the page is quiet, or when a part of it is needed. What
// belongs to an occasion of its own is a piece of its own: `later_pages.ts`, `calls/later_calls.ts`, `threads/later_threads.ts`,
// `../panels/side.ts`.

import "../messages/later.ts"; // before any of the views
import "../lib/look.ts"; // follows changes in other tabs

export { AgentList } from "./agent_list.tsx";
export { CommandList } from "./command_list.tsx";
export { Choice } from "./model_choice.tsx";
export { FindBar } from "./find_bar.tsx";
export { Grip } from "./grip.tsx";
export { GuardBar } from "./guard_bar.tsx";
export { HistoriesButton } from "./histories.tsx";
export { LimitNotes } from "./limit_note.tsx";
export { LimitNote } from "./limit_note.tsx";
export { PlanBar } from "./plan_bar.tsx";
export { NextPrice } from "./next_price.tsx";
export { Panel } from "../panels/panel.tsx";
export { ProjectChip } from "./project_chip.tsx";
export { askMove, editProject, moveConversations, moveSelected, newProject } from "../store/projects.ts";
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
export { keepTemporary } from "../store/temporary.ts";
export { askUndo, redo } from "../store/undo_verbs.ts";
export { UndoneBar } from "./undone_bar.tsx";
export { Unpack } from "./unpack.tsx";
export { SearchFilters } from "./search_filters.tsx";
export { SummaryLine } from "./summary_line.tsx";
export { WelcomeOffers } from "./welcome_offers.tsx";
export { UserMenuItems } from "./user_menu_items.tsx";
export { askAnotherModel, compareAnswers, pressFeedback, savePrompt, showBranches, speak } from "./answer_verbs.ts";
export { install } from "./installed.ts";
