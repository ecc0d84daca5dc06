// What goes on, in one line under the conversation. Pure: state in, words out.

const HINTS = {
  rate_limited: "The model's service asks for a pause. Wait a little, then try again.",
  context_overflow: "The conversation has become longer than this model can read. Start a new one, or edit an earlier message.",
  auth: "The key for the model's service was refused. Whoever runs this server has to set it.",
  model_unavailable: "The model's service does not answer. Try again in a moment.",
  stalled: "The model stopped sending. What it had said is kept.",
};

/** {kind, text, detail?, actions?} or null when there is nothing to say. */
export function statusOf(conversation, outbox) {
  const { running, failed } = conversation;
  if (conversation.isRecovering) return { kind: "wait", text: "Picking up after an interruption. Nothing is lost." };
  if (conversation.loadError && !conversation.isLoaded) {
    return { kind: "error", text: "This conversation could not be loaded.", detail: conversation.loadError.message, actions: [{ name: "reload", label: "Try again" }] };
  }
  if (!conversation.isLoaded && conversation.instance.id) return { kind: "wait", text: "Loading" };
  if (running) return runningStatus(conversation, running);
  if (outbox.entries.some((entry) => entry.state === "accepted")) return { kind: "wait", text: "Waiting for the model" };
  if (failed) return failedStatus(failed);
  return null;
}

function runningStatus(conversation, running) {
  if (conversation.isStopping) return { kind: "wait", text: "Stopping" };
  if (running.phase === "waiting") return { kind: "wait", text: "Waiting for the model" };
  const part = running.message?.parts.at(-1);
  const isOpen = part && part.type !== "step-start" && part.state !== "done" && !part.state?.startsWith("output-");
  return isOpen ? null : { kind: "wait", text: "Waiting for the model" }; // an open part shows by itself that it goes on
}

function failedStatus(failed) {
  const text = failed.error ? `The answer failed: ${failed.error}` : "The answer failed.";
  const tried = failed.attempts > 1 ? `It was tried ${failed.attempts} times. ` : "";
  const detail = tried + (HINTS[failed.code ?? failed.error_code] ?? "Your message, and what was said up to then, are kept.");
  return { kind: "error", text, detail, actions: [{ name: "retryFailed", label: "Try again" }] };
}
