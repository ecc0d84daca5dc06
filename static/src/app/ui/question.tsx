// What a call waits for: a person's approval, or the result of another app that shows the conversation.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { toolName } from "../store/fold.ts";
import { isOwn, mayDecide } from "../store/instances.ts";
import { asksApproval } from "../store/runs.ts";
import { titleOfTool } from "../store/tool_words.ts";
import type { ToolPart } from "../store/types.ts";
import { ApprovalCard, askedOf, sourcesIn } from "./approval_card.tsx";
import type { Parts } from "./parts_context.ts";

interface Props {
  context: Parts;
  part: ToolPart;
}

export function Question({ context, part }: Props) {
  return asksApproval(part) ? <Approval context={context} part={part} /> : <Elsewhere context={context} part={part} />;
}

function Approval({ context, part }: Props) {
  const { app, conversation } = context;
  const openCalls = follow(context.openCalls);
  const id = part.toolCallId;
  useEffect(() => openCalls.want(id), [id]);
  const known = openCalls.of(id);
  const { descriptor } = part.approval ?? {};
  return (
    <ApprovalCard
      tool={toolName(part)}
      callId={id}
      title={titleOfTool(part)}
      sentence={descriptor?.sentence ?? ""}
      risk={descriptor?.risk ?? ""}
      because={sourcesIn(descriptor?.because)}
      why={descriptor?.key ?? ""}
      offers={isOwn(conversation.instance) ? known?.offers ?? [] : []}
      rule={descriptor?.rule ?? ""}
      choices={descriptor?.choices ?? []}
      input={part.input}
      schema={known?.input_schema ?? null}
      mayEdit={known?.may_edit ?? false}
      expiresAt={known?.expires_at ?? null}
      isReadOnly={!mayDecide(conversation.instance)}
      askedOf={askedOf(follow(app.people), conversation.instance)}
      decide={async (decision) => {
        const isStored = await app.deciding.decideIn(conversation, part, decision);
        if (isStored) app.composer.focus(); // the button that was pressed goes away
        return isStored;
      }}
    />
  );
}

/** A call that the server does not run. */
function Elsewhere({ context: { app, conversation }, part }: Props) {
  const [isBusy, setBusy] = useState(false);
  const skip = async () => {
    setBusy(true);
    if (await app.deciding.skip(conversation, part)) app.composer.focus();
    else setBusy(false); // it was not stored: try again
  };
  return (
    <div class="question" role="group" aria-label={t("calls.waiting-for", { name: titleOfTool(part) })}>
      <p class="question-text">{t("calls.answered-elsewhere")}</p>
      {!conversation.instance.isReadOnly && (
        <p class="question-buttons">
          <button type="button" class="button" disabled={isBusy} onClick={skip}>{t("calls.skip")}</button>
        </p>
      )}
    </div>
  );
}
