// Below an answer: good or bad. A second press takes it back; why is asked for by what is loaded then.

import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { feedbackOf } from "../store/feedback.ts";
import type { Message } from "../store/types.ts";
import { IconButton } from "./icon.tsx";
import type { Parts } from "./parts_context.ts";

export function FeedbackButtons({ context: { app, conversation }, message }: { context: Parts; message: Message }) {
  const feedback = follow(feedbackOf(conversation, app.api));
  const word = feedback.of(message.id);
  const press = async (isGood: boolean) => {
    const { pressFeedback } = await pending(import("../later/views.ts"));
    await pressFeedback(app, feedback, message.id, isGood);
  };
  const button = (isGood: boolean) => (
    <IconButton
      class="is-named"
      icon={isGood ? "good" : "bad"}
      label={t(isGood ? "message.good" : "message.bad")}
      title={undefined}
      aria-pressed={word?.is_good === isGood}
      onClick={() => void press(isGood)}
    />
  );
  return (
    <>
      {button(true)}
      {button(false)}
    </>
  );
}
