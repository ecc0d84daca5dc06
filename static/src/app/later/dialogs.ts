// All dialogs as one piece, by name: it is loaded with the first question.

import "../messages/later.ts"; // before any of the dialogs
import { AskName } from "../dialogs/ask_name.tsx";
import { BranchMap } from "../dialogs/branch_map.tsx";
import { ChooseModel } from "../dialogs/choose_model.tsx";
import { ChooseWorkspace } from "../dialogs/choose_workspace.tsx";
import { CompareAnswers } from "../dialogs/compare_answers.tsx";
import { Confirm } from "../dialogs/confirm.tsx";
import { EditAnswer } from "../dialogs/edit_answer.tsx";
import { ExportConversations } from "../dialogs/export_conversations.tsx";
import { ImportArchive } from "../dialogs/import_archive.tsx";
import { MoveToProject } from "../dialogs/move_to_project.tsx";
import { Outline } from "../dialogs/outline.tsx";
import { Picture } from "../dialogs/picture.tsx";
import { EditProject } from "../dialogs/project.tsx";
import { EditPrompt, FillPrompt } from "../dialogs/prompts.tsx";
import { Share } from "../dialogs/share.tsx";
import { ShareLinks } from "../dialogs/share_links.tsx";
import { Shortcuts } from "../dialogs/shortcuts.tsx";
import { Undo } from "../dialogs/undo.tsx";
import type { DialogViews } from "../store/dialogs.ts";

export const dialogs: DialogViews = {
  "ask-name": AskName,
  "branch-map": BranchMap,
  "choose-model": ChooseModel,
  "choose-workspace": ChooseWorkspace,
  "compare-answers": CompareAnswers,
  confirm: Confirm,
  "edit-answer": EditAnswer,
  "edit-project": EditProject,
  "edit-prompt": EditPrompt,
  "export-conversations": ExportConversations,
  "fill-prompt": FillPrompt,
  "import-archive": ImportArchive,
  "move-to-project": MoveToProject,
  outline: Outline,
  picture: Picture,
  share: Share,
  "share-links": ShareLinks,
  shortcuts: Shortcuts,
  undo: Undo,
};
