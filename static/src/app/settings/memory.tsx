// The section "Memory": what agents remember about a person, over all conversations. An empty one can be begun.

import { t } from "../lib/i18n.ts";
import { BlockCard } from "../panels/block_card.tsx";
import { Failure } from "../panels/panel.tsx";
import { emptyMemory, ownBlock, Remembered } from "../store/remembered.ts";
import { useApp } from "../ui/context.ts";
import { useSection } from "./reading.ts";

export function MemorySection() {
  const { api } = useApp();
  const reading = useSection((signal) => api.memory(signal));
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("memory.loading")}</p>;
  }
  const blocks = reading.value.map(ownBlock);
  return (
    <div class="memory" id="settings-memory" tabIndex={-1}>
      <p class="settings-intro">{t(blocks.length ? "memory.of-you-hint" : "memory.begin-about")}</p>
      {(blocks.length ? blocks : [emptyMemory(false)]).map((block) => (
        <BlockCard
          key={block.label}
          block={block}
          store={new Remembered(api, { label: block.label, sessionId: "", isOwn: true })}
          changed={() => reading.again()}
          placeId="settings-memory"
        />
      ))}
    </div>
  );
}
