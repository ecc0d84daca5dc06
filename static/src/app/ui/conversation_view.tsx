// The conversation that is shown: its head, what is said about the line and the place, the messages, and the field.

import { useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { ComposerView } from "./composer.tsx";
import { ConnectionBar } from "./connection_bar.tsx";
import { useApp } from "./context.ts";
import { FindBar } from "./find_bar.tsx";
import { Head } from "./head.tsx";
import { ModelBanner } from "./model_banner.tsx";
import { PlaceBar } from "./place_bar.tsx";
import { Timeline } from "./timeline.tsx";

export function ConversationView({ isCovered }: { isCovered: boolean }) {
  const app = follow(useApp());
  const { conversation, composer } = app;
  const { instance } = follow(conversation);
  const element = useRef<HTMLElement>(null);
  return (
    <section
      id="main"
      class="main"
      aria-labelledby="title"
      inert={isCovered}
      ref={element}
      {...dropHandlers(element, (files) => composer.addFiles(files), instance.isReadOnly)}
    >
      <Head />
      <FindBar />
      <PlaceBar />
      <ConnectionBar />
      <ModelBanner />
      <Timeline key={`${instance.agent}/${instance.name}`} />
      {instance.isReadOnly
        ? (
          <p id="read-only" class="read-only" role="note">
            {t("conversation.read-only", { agent: instance.agent })}
          </p>
        )
        : <ComposerView />}
    </section>
  );
}

/** Files can be dropped anywhere on the conversation. */
function dropHandlers(
  element: { current: HTMLElement | null },
  take: (files: File[]) => void,
  isReadOnly: boolean,
) {
  const hasFiles = (event: DragEvent) => !isReadOnly && event.dataTransfer?.types.includes("Files");
  return {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      element.current?.classList.add("is-drop");
    },
    onDragLeave: (event: DragEvent) => {
      if (!element.current?.contains(event.relatedTarget as Node)) element.current?.classList.remove("is-drop");
    },
    onDrop: (event: DragEvent) => {
      element.current?.classList.remove("is-drop");
      const files = [...(event.dataTransfer?.files ?? [])];
      if (!hasFiles(event) || !files.length) return;
      event.preventDefault();
      take(files);
    },
  };
}
