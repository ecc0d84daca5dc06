// What is remembered: of the person, of the conversation, of the agent. Everything can be seen; what is kept here can be changed.

import { t } from "../lib/i18n.ts";
import { emptyMemory, grouped, Remembered } from "../store/remembered.ts";
import { useApp } from "../ui/context.ts";
import { BlockCard } from "./block_card.tsx";
import { Failure } from "./panel.tsx";
import { useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";

export function MemoryPanel({ conversation }: PanelProps) {
  const { api } = useApp();
  const { id } = conversation.instance;
  const reading = useReading(conversation, async (signal) => {
    const [session, memory] = await Promise.all([
      id ? api.instance(id) as Promise<{ session_id?: string | null }> : null,
      api.memory(signal),
    ]);
    const sessionId = session?.session_id ?? "";
    const blocks = sessionId ? (await api.sessionContext(sessionId, signal)).blocks : [];
    return { groups: grouped(blocks, memory), sessionId };
  });
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("memory.loading")}</p>;
  }
  const { groups, sessionId } = reading.value;
  return (
    <div class="memory">
      {groups.filter((group) => group.blocks.length > 0 || group.key === "user").map((group) => (
        <section key={group.key} class="memory-group" aria-label={group.title}>
          <h2>{group.title}</h2>
          <p class="muted">{group.blocks.length ? group.hint : t("memory.nothing-about-you")}</p>
          {(group.blocks.length ? group.blocks : [emptyMemory(Boolean(sessionId))]).map((block) => (
            <BlockCard
              key={block.label}
              block={block}
              store={new Remembered(api, {
                label: block.label,
                sessionId: block.isElsewhere ? "" : sessionId,
                isOwn: block.of === "user",
              })}
              changed={() => reading.again()}
            />
          ))}
        </section>
      ))}
    </div>
  );
}
