// The English texts of views that are loaded when they are needed. They come with `later/views.ts`; nothing that is loaded before
// may say them (a test reads the imports).

import { addMessages } from "../lib/i18n.ts";
import account from "./en/account.json" with { type: "json" };
import { loadLaterTranslations } from "../lib/translations.ts";
import answer from "./en/answer.json" with { type: "json" };
import approvals from "./en/approvals.json" with { type: "json" };
import background from "./en/background.json" with { type: "json" };
import branches from "./en/branches.json" with { type: "json" };
import browser from "./en/browser.json" with { type: "json" };
import calls from "./en/calls.json" with { type: "json" };
import choice from "./en/choice.json" with { type: "json" };
import deleted from "./en/deleted.json" with { type: "json" };
import exports from "./en/exports.json" with { type: "json" };
import extensions from "./en/extensions.json" with { type: "json" };
import feedback from "./en/feedback.json" with { type: "json" };
import files from "./en/files.json" with { type: "json" };
import find from "./en/find.json" with { type: "json" };
import guard from "./en/guard.json" with { type: "json" };
import histories from "./en/histories.json" with { type: "json" };
import imports from "./en/imports.json" with { type: "json" };
import keys from "./en/keys.json" with { type: "json" };
import limits from "./en/limits.json" with { type: "json" };
import memory from "./en/memory.json" with { type: "json" };
import menu from "./en/menu.json" with { type: "json" };
import notifications from "./en/notifications.json" with { type: "json" };
import offers from "./en/offers.json" with { type: "json" };
import panel from "./en/panel.json" with { type: "json" };
import people from "./en/people.json" with { type: "json" };
import pictures from "./en/pictures.json" with { type: "json" };
import previews from "./en/previews.json" with { type: "json" };
import projects from "./en/projects.json" with { type: "json" };
import prompts from "./en/prompts.json" with { type: "json" };
import repository from "./en/repository.json" with { type: "json" };
import rules from "./en/rules.json" with { type: "json" };
import runs from "./en/runs.json" with { type: "json" };
import schedules from "./en/schedules.json" with { type: "json" };
import search from "./en/search.json" with { type: "json" };
import servers from "./en/servers.json" with { type: "json" };
import settings from "./en/settings.json" with { type: "json" };
import selection from "./en/selection.json" with { type: "json" };
import sharing from "./en/sharing.json" with { type: "json" };
import summaries from "./en/summaries.json" with { type: "json" };
import threads from "./en/threads.json" with { type: "json" };
import todos from "./en/todos.json" with { type: "json" };
import undo from "./en/undo.json" with { type: "json" };
import usage from "./en/usage.json" with { type: "json" };
import work from "./en/work.json" with { type: "json" };

export const later = {
  ...account,
  ...answer,
  ...approvals,
  ...background,
  ...branches,
  ...browser,
  ...calls,
  ...choice,
  ...deleted,
  ...exports,
  ...extensions,
  ...feedback,
  ...files,
  ...find,
  ...guard,
  ...histories,
  ...imports,
  ...keys,
  ...limits,
  ...memory,
  ...menu,
  ...notifications,
  ...offers,
  ...panel,
  ...people,
  ...pictures,
  ...previews,
  ...projects,
  ...prompts,
  ...repository,
  ...rules,
  ...runs,
  ...schedules,
  ...search,
  ...servers,
  ...settings,
  ...selection,
  ...sharing,
  ...summaries,
  ...threads,
  ...todos,
  ...undo,
  ...usage,
  ...work,
} as const;

addMessages(later);
await loadLaterTranslations();
