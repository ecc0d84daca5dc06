// All dialogs as one piece: it is loaded with the first question.

import "../messages/later.ts"; // before any of the dialogs

export { AskName } from "./ask_name.tsx";
export { BranchMap } from "./branch_map.tsx";
export { ChooseModel } from "./choose_model.tsx";
export { ChooseWorkspace } from "./choose_workspace.tsx";
export { CompareAnswers } from "./compare_answers.tsx";
export { Confirm } from "./confirm.tsx";
export { EditAnswer } from "./edit_answer.tsx";
export { ExportConversations } from "./export_conversations.tsx";
export { ImportArchive } from "./import_archive.tsx";
export { Outline } from "./outline.tsx";
export { Picture } from "./picture.tsx";
export { EditPrompt, FillPrompt } from "./prompts.tsx";
export { Share } from "./share.tsx";
export { ShareLinks } from "./share_links.tsx";
export { Shortcuts } from "./shortcuts.tsx";
export { Undo } from "./undo.tsx";
