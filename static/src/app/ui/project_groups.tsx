// Projects in the list of conversations: groups that open, above the days. What is done with one is loaded when it is done.

import { useRef } from "preact/hooks";
import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Project } from "../store/list.ts";
import type { Instance } from "../store/types.ts";
import { useApp } from "./context.ts";
import { dropTarget } from "./dragging.ts";
import { FollowLink } from "./follow_link.tsx";
import { Icon, IconButton } from "./icon.tsx";
import { ShowMore } from "./show_more.tsx";

interface Props {
  /** The row of a conversation. */
  row: (item: Instance) => preact.ComponentChildren;
}

const verbs = () => pending(import("../later/views.ts"));

export function ProjectGroups({ row }: Props) {
  const app = useApp();
  const list = follow(app.list);
  return (
    <section id="projects" aria-labelledby="projects-title">
      <div class="projects-head">
        <h2 id="projects-title">{t("list.projects")}</h2>
        <IconButton
          id="project-new"
          icon="plus"
          label={t("list.project-new")}
          onClick={async () => void (await verbs()).newProject(app)}
        />
      </div>
      {list.projects.map((project) => <ProjectGroup key={project.id} project={project} row={row} />)}
    </section>
  );
}

function ProjectGroup({ project, row }: Props & { project: Project }) {
  const app = useApp();
  const list = follow(app.list);
  const rows = useRef<HTMLUListElement>(null);
  const { id, name, colour, agent } = project;
  const isOpen = list.unfolded.has(id);
  const items = isOpen ? list.ofProject(id) : [];
  return (
    <section class="project" aria-labelledby={`project-${id}`} data-project={id} {...dropTarget(app, id)}>
      <div class="project-head">
        <h3>
          <button
            id={`project-${id}`}
            type="button"
            class="project-name"
            aria-expanded={isOpen}
            onClick={() => list.unfold(id)}
          >
            <Icon name="chevron" />
            <span class="project-dot" data-colour={colour} />
            <span class="row-title" dir="auto">{name}</span>
          </button>
        </h3>
        <FollowLink
          class="icon-button"
          href={app.router.address({ page: "new", agent, project: id })}
          aria-label={t("list.project-begin", { project: name })}
          title={t("list.project-begin", { project: name })}
          go={() => app.place.newConversation(agent, id)}
        >
          <Icon name="plus" />
        </FollowLink>
        <IconButton
          icon="more"
          label={t("list.project-edit", { project: name })}
          onClick={async () => void (await verbs()).editProject(app, project)}
        />
      </div>
      {isOpen && (
        <>
          <ul ref={rows}>{items.map(row)}</ul>
          {!items.length && <p class="muted">{t("list.project-empty")}</p>}
          <ShowMore
            id={`project-more-${id}`}
            label={t("common.show-more")}
            isShown={list.hasMoreOf(project)}
            load={() => list.loadProject(id)}
            rows={rows}
          />
        </>
      )}
    </section>
  );
}
