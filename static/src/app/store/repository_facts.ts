// What is said of a repository and of its files. Pure.

import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { RepositoryChange } from "../net/files_api.ts";

const SHORT = 10;
const FATES = { created: "files.created", updated: "files.updated", deleted: "files.deleted" } as const;

export const shortCommit = (commit: string): string => commit.slice(0, SHORT);

/** What became of a file since the last commit. */
export const fateOf = ({ kind, was }: RepositoryChange): string =>
  was ? t("repository.moved", { path: withoutTricks(was) }) : t(FATES[kind]);

/** How git has it: nothing is said of what is tracked and not staged, as most changes are. */
export function markOf({ is_tracked: isTracked, staged }: RepositoryChange): string {
  if (!isTracked) return t("repository.untracked");
  if (staged === "none") return "";
  return t(staged === "all" ? "repository.staged" : "repository.partly-staged");
}
