// The workspaces of an agent that keeps threads: which threads work on which, the verbs on them, and what was done in this thread.

import { useMemo } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import type { Conversation } from "../store/conversation.ts";
import { isSettled, isTool, toolName } from "../store/fold.ts";
import { OpenCalls } from "../store/open_calls.ts";
import type { ThreadDesk, Workspace } from "../store/thread_desk.ts";
import { argumentOf } from "../store/tool_kinds.ts";
import type { ToolPart } from "../store/types.ts";
import { ToolBody } from "../ui/calls/tool_body.tsx";
import { useApp } from "../ui/context.ts";
import { Fold } from "../ui/fold.tsx";
import { Icon } from "../ui/icon.tsx";
import type { Parts } from "../ui/parts_context.ts";
import { MenuButton } from "../ui/popover.tsx";
import { Problem } from "../ui/problem.tsx";
import { Reader } from "../ui/reader.ts";
import { Failure } from "./panel.tsx";
import type { PanelProps } from "./registry.ts";

export function WorkspacesPanel({ conversation }: PanelProps) {
  const app = useApp();
  const { desk } = follow(app.threads);
  if (!conversation.instance.id) return <p class="muted">{t("threads.begin-text")}</p>;
  if (!desk) return <p class="muted">{t("common.loading")}</p>;
  return <Desk desk={desk} conversation={conversation} />;
}

function Desk({ desk, conversation }: PanelProps & { desk: ThreadDesk }) {
  const { threads } = useApp();
  const { workspaces, isRead, error } = follow(desk);
  if (!isRead) {
    return error ? <Failure text={error} again={() => desk.refresh()} /> : <p class="muted">{t("common.loading")}</p>;
  }
  const isThread = threads.isThread(follow(conversation).instance);
  return (
    <div class="desk">
      <Problem text={error} />
      <p class="muted">{t("threads.about")}</p>
      <ul class="desk-workspaces" aria-label={t("threads.workspaces")}>
        {workspaces.map((workspace) => (
          <WorkspaceCard
            key={workspace.id}
            desk={desk}
            workspace={workspace}
            conversation={isThread ? conversation : null}
          />
        ))}
      </ul>
      <p class="panel-actions">
        <button type="button" class="button" onClick={() => desk.createWorkspace()}>
          <Icon name="plus" />
          {t("threads.new-workspace")}
        </button>
      </p>
      {isThread && <Terminal conversation={conversation} />}
    </div>
  );
}

interface CardProps {
  desk: ThreadDesk;
  workspace: Workspace;
  /** The thread that is shown; null beside the agent's own conversation. */
  conversation: Conversation | null;
}

function WorkspaceCard({ desk, workspace, conversation }: CardProps) {
  const app = useApp();
  const instance = conversation?.instance ?? null;
  const isHere = instance !== null && desk.workspaceOf(instance)?.id === workspace.id;
  const name = withoutTricks(workspace.name);
  const users = desk.threadsOn(workspace);
  const more = t("threads.more-for", { name });
  return (
    <li class={isHere ? "desk-workspace is-here" : "desk-workspace"} data-workspace={workspace.id}>
      <p class="desk-head">
        <Icon name="folder" />
        <bdi class="desk-name">{name}</bdi>
        {isHere && <span class="desk-here">{t("threads.here")}</span>}
        <MenuButton
          label={more}
          button={{ class: "icon-button", "aria-label": more, title: more, children: <Icon name="more" /> }}
          entries={() => [
            { icon: "edit", label: t("common.rename"), run: () => desk.renameWorkspace(workspace) },
            {
              icon: "bin",
              label: t("common.delete"),
              run: () => desk.removeWorkspace(workspace),
              isDanger: true,
              isApart: true,
            },
          ]}
        />
      </p>
      <p class="desk-users muted">
        {users.length > 0 ? t("threads.used-by") : t("threads.unused")}
        {users.map((thread, index) => (
          <span key={thread.id}>
            {index > 0 && t("list.separator")}
            <button type="button" class="link" dir="auto" onClick={() => desk.openThread(thread.id)}>
              {withoutTricks(thread.name)}
            </button>
          </span>
        ))}
      </p>
      {instance && (
        <p class="panel-actions">
          {isHere
            ? (
              <>
                <button type="button" class="button" onClick={() => app.panel.select("files")}>
                  {t("threads.files")}
                </button>
                <button type="button" class="button" onClick={() => app.showChanges([])}>{t("threads.changes")}</button>
                <button
                  type="button"
                  class="quiet"
                  aria-label={t("threads.detach-one", { name })}
                  onClick={() => desk.work(instance, "")}
                >
                  {t("threads.detach")}
                </button>
              </>
            )
            : (
              <button
                type="button"
                class="button"
                aria-label={t("threads.attach-one", { name })}
                onClick={() => desk.work(instance, workspace.id)}
              >
                {t("threads.attach")}
              </button>
            )}
        </p>
      )}
    </li>
  );
}

const isCommand = (part: ToolPart) => /^(bash|shell|run_?command)$/i.test(toolName(part));

/** The commands of this thread, the newest first, each with its output. */
function Terminal({ conversation }: PanelProps) {
  const app = useApp();
  const { messages } = follow(conversation);
  const last = messages.at(-1);
  if (last) conversation.revision(last.id);
  const context = useMemo<Parts>(() => {
    const openCalls = new OpenCalls(app.api, conversation);
    return { app, conversation, reader: new Reader(conversation), openCalls };
  }, [conversation]);
  const runs = messages.flatMap(({ parts }) => parts.filter(isTool).filter(isCommand)).reverse();
  return (
    <section class="desk-runs" aria-labelledby="desk-runs">
      <h2 id="desk-runs">{t("threads.runs")}</h2>
      {runs.length === 0 && <p class="muted">{t("threads.no-runs")}</p>}
      {runs.map((part) => (
        <Fold
          key={part.toolCallId}
          icon="code"
          class={isSettled(part) ? "tool" : "tool is-live"}
          data-state={part.state}
          label={<code dir="ltr">{withoutTricks(argumentOf(part, "script", "command").split("\n")[0])}</code>}
        >
          {() => <ToolBody context={context} part={part} />}
        </Fold>
      ))}
    </section>
  );
}
