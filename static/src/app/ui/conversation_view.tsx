// The conversation that is shown: its head, what is said about the line and the place, the messages, and the field.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import { isOpen, todosOf } from "../store/todos.ts";
import { ComposerView } from "./composer.tsx";
import { ConnectionBar } from "./connection_bar.tsx";
import { useApp } from "./context.ts";
import { Head } from "./head.tsx";
import { lazy } from "./lazy.tsx";
import { ModelBanner } from "./model_banner.tsx";
import { PlaceBar } from "./place_bar.tsx";
import { Timeline } from "./timeline.tsx";

const GuardBar = lazy(async () => (await import("../later/views.ts")).GuardBar);
const PlanBar = lazy(async () => (await import("../later/views.ts")).PlanBar);
const ParentBar = lazy(async () => (await import("../later/calls.ts")).ParentBar);
const UndoneBar = lazy(async () => (await import("../later/views.ts")).UndoneBar);
const TodoBar = lazy(async () => (await import("../later/views.ts")).TodoBar);
const FindBar = lazy(async () => (await import("../later/views.ts")).FindBar);

export function ConversationView({ isCovered }: { isCovered: boolean }) {
  const app = useApp();
  follow(app.place);
  const { conversation, composer } = app;
  const { instance } = follow(conversation);
  const { isDropping, handlers } = useDrop((files) => composer.addFiles(files), instance.isReadOnly);
  return (
    <section
      id="main"
      class="main"
      aria-labelledby="title"
      inert={isCovered}
      {...handlers}
    >
      {isDropping && <p class="drop-here">{t("composer.drop-here")}</p>}
      <Head />
      {app.place.isFinding && <FindBar key={instance.id} />}
      {instance.parentId && <ParentBar id={instance.parentId} />}
      <PlaceBar />
      <ModelBanner />
      {instance.guard && <GuardBar version={instance.guard} />}
      {instance.plans && <PlanBar instanceId={instance.id} isReadOnly={instance.isReadOnly || !isOwn(instance)} />}
      <ConnectionBar />
      <Timeline key={`${instance.agent}/${instance.name}`} />
      {follow(app.undoing).last && <UndoneBar />}
      <Todos />
      <Typing />
      {instance.isReadOnly
        ? (
          <p id="read-only" class="read-only" role="note">
            {instance.isRetired ? t("conversation.read-only", { agent: instance.agent }) : t("conversation.reads")}
          </p>
        )
        : <ComposerView />}
    </section>
  );
}

/** The agent's to-do list, while there is something to do or an answer runs. */
function Todos() {
  const { conversation } = useApp();
  const { messages, running, place } = follow(conversation);
  const last = messages.at(-1);
  if (last) conversation.revision(last.id);
  const todos = place ? null : todosOf(messages);
  return todos?.length && (running || todos.some(isOpen)) ? <TodoBar todos={todos} /> : null;
}

/** Who else is writing just now. */
function Typing() {
  const { typing } = follow(useApp().people);
  return (
    <p id="typing" class="typing" role="status" hidden={!typing.length} dir="auto">
      {typing.length > 0 && t("conversation.typing", { names: typing.join(", "), count: typing.length })}
    </p>
  );
}

/** Files can be dropped anywhere on the conversation. */
function useDrop(take: (files: File[]) => void, isReadOnly: boolean) {
  const [isDropping, setDropping] = useState(false);
  const hasFiles = (event: DragEvent) => !isReadOnly && event.dataTransfer?.types.includes("Files");
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setDropping(true);
    },
    onDragLeave: (event: DragEvent) => {
      const isOutside = !(event.currentTarget as HTMLElement).contains(event.relatedTarget as Node);
      if (isOutside) setDropping(false);
    },
    onDrop: (event: DragEvent) => {
      setDropping(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (!hasFiles(event) || !files.length) return;
      event.preventDefault();
      take(files);
    },
  };
  return { isDropping, handlers };
}
