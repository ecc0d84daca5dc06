// What is done with projects: made, changed, removed, and conversations moved between them. Loaded when it is done first.

import { t } from "../lib/i18n.ts";
import { BulkApi } from "../net/bulk_api.ts";
import type { Project } from "../net/projects_api.ts";
import type { App } from "./app.ts";
import type { Instance } from "./types.ts";

const UNDO_MS = 10_000;
const MOST = 100; // of the API

/** Make a project; resolves to it, or to null where the person did not. */
export async function newProject(app: App): Promise<Project | null> {
  const answer = await app.dialogs.ask("edit-project", { project: null });
  if (!answer?.project) return null;
  app.list.putProject(answer.project.id, answer.project);
  app.list.unfold(answer.project.id, true);
  return answer.project;
}

/** Change a project, or remove it: its conversations stay. */
export async function editProject(app: App, project: Project): Promise<void> {
  const answer = await app.dialogs.ask("edit-project", { project });
  if (!answer) return;
  app.list.putProject(project.id, answer.project);
  if (answer.project) return;
  app.notices.show(t("projects.removed", { project: project.name }));
  const { conversation } = app;
  if (conversation.instance.projectId === project.id) conversation.update({ projectId: null });
  await app.list.refresh();
}

/** Ask for a project, and put these conversations into it. */
export async function askMove(app: App, items: readonly Instance[]): Promise<boolean> {
  const { dialogs, list } = app;
  const found = new Set(items.map(({ projectId }) => projectId));
  const current = found.size === 1 ? [...found][0] : undefined;
  const answer = await dialogs.ask("move-to-project", {
    projects: list.projects,
    count: items.length,
    current,
  });
  if (!answer) return false;
  const id = answer.isNew ? (await newProject(app))?.id : answer.id;
  if (id === undefined) return false;
  await moveConversations(app, items.map((item) => item.id), id);
  return true;
}

/** The selected ones: they are selected no more once they are moved. */
export async function moveSelected(app: App): Promise<void> {
  const { list, selection } = app;
  const items = [...selection.ids].flatMap((id) => list.find(id) ?? []);
  if (items.length && await askMove(app, items)) selection.clear();
}

/** Put conversations into a project, or with null into none, with a way back for a moment. */
export async function moveConversations(app: App, ids: readonly string[], projectId: string | null): Promise<void> {
  const before = ids.map((id) => app.list.find(id) ?? app.conversation.instance)
    .filter((item) => ids.includes(item.id) && item.projectId !== projectId).slice(0, MOST);
  if (!before.length) return;
  const done = await move(app, before.map(({ id }) => id), projectId);
  if (!done.length) return;
  const project = app.list.projects.find(({ id }) => id === projectId);
  if (project) app.list.unfold(project.id, true);
  const text = project
    ? t("projects.moved", { count: done.length, project: project.name })
    : t("projects.moved-out", { count: done.length });
  const back = async () => {
    for (const from of new Set(before.map((item) => item.projectId))) {
      await move(app, before.filter((item) => item.projectId === from).map(({ id }) => id), from);
    }
  };
  app.notices.show(text, { label: t("common.undo"), run: () => void back() }, UNDO_MS);
}

/** Resolves to the ids of those that were moved; what was not is said. */
async function move(app: App, ids: readonly string[], projectId: string | null): Promise<string[]> {
  const { api, conversations, list, notices } = app;
  try {
    const outcomes = Object.entries(await new BulkApi(api).move(ids, projectId));
    const done = outcomes.filter(([, outcome]) => outcome === "done").map(([id]) => id);
    done.forEach((id) => conversations.patch(id, { projectId }));
    if (done.length < ids.length) notices.show(t("list.many-left", { count: ids.length - done.length }));
    await list.refresh();
    return done;
  } catch (error) {
    notices.fail(error);
    return [];
  }
}
