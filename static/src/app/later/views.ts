// What may be wanted beside any conversation, as one piece: loaded once the page is quiet, or when a part of it is needed. What
// belongs to an occasion of its own is a piece beside this one.

import "../messages/later.ts"; // before any of the views
import "../lib/look.ts"; // follows changes in other tabs

export { AgentList } from "../ui/agent_list.tsx";
export { CommandList } from "../ui/command_list.tsx";
export { Choice } from "../ui/model_choice.tsx";
export { FindBar } from "../ui/find_bar.tsx";
export { Grip } from "../ui/grip.tsx";
export { GuardBar } from "../ui/guard_bar.tsx";
export { HistoriesButton } from "../ui/histories.tsx";
export { LimitNotes } from "../ui/limit_note.tsx";
export { LimitNote } from "../ui/limit_note.tsx";
export { PlanBar } from "../ui/plan_bar.tsx";
export { NextPrice } from "../ui/next_price.tsx";
export { Panel } from "../panels/panel.tsx";
export { ProjectChip } from "../ui/project_chip.tsx";
export { askMove, editProject, moveConversations, moveSelected, newProject } from "../store/projects.ts";
export { Question } from "../ui/question.tsx";
export { ParentBar } from "../ui/runs/parent_bar.tsx";
export { LooseRuns, RunCards } from "../ui/runs/run_cards.tsx";
export { SettingsPage } from "../settings/settings_page.tsx";
export { SelectionBar } from "../ui/selection_bar.tsx";
export { TodoBar } from "../ui/todo_bar.tsx";
export { openPreview } from "../store/open_preview.ts";
export { ThreadsHead } from "../ui/threads/threads_head.tsx";
export { ThreadsWelcome } from "../ui/threads/threads_welcome.tsx";
export { printConversation } from "../store/printing.ts";
export { keepTemporary } from "../store/temporary.ts";
export { askUndo, redo } from "../store/undo_verbs.ts";
export { UndoneBar } from "../ui/undone_bar.tsx";
export { Unpack } from "../ui/unpack.tsx";
export { SearchFilters } from "../ui/search_filters.tsx";
export { SummaryLine } from "../ui/summary_line.tsx";
export { WelcomeOffers } from "../ui/welcome_offers.tsx";
export { UserMenuItems } from "../ui/user_menu_items.tsx";
export { askAnotherModel, compareAnswers, pressFeedback, savePrompt, showBranches, speak } from "../ui/answer_verbs.ts";
export { install } from "../ui/installed.ts";
