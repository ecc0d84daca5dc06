// The project that the open conversation is in, beside its title.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { editProject } from "../store/projects.ts";
import { useApp } from "./context.ts";

export function ProjectChip() {
  const app = useApp();
  const { instance } = follow(app.conversation);
  const { projects } = follow(app.list);
  const project = projects.find(({ id }) => id === instance.projectId);
  if (!project) return null;
  const label = t("list.project-edit", { project: project.name });
  return (
    <button
      type="button"
      id="project-chip"
      class="project-chip"
      title={label}
      onClick={() => editProject(app, project)}
    >
      <span class="project-dot" data-colour={project.colour} />
      <span class="visually-hidden">{t("projects.in")}</span>
      <span class="row-title" dir="auto">{project.name}</span>
    </button>
  );
}
