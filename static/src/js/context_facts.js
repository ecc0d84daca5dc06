// What the next model call will contain, as rows and shares. Pure: the API's answer in, words and figures out.

const number = new Intl.NumberFormat();
export const count = (value) => number.format(value);

/** "1 message", "2 messages". */
export const several = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;

/** The pieces of a call in the order in which a model reads them; those without tokens are left out of the bar. */
export function piecesOf(context) {
  return [
    { key: "system", label: "System prompt", tokens: context.system.tokens },
    { key: "tools", label: "Tools", tokens: context.tools.reduce((sum, tool) => sum + tool.tokens, 0) },
    { key: "summary", label: "Summary", tokens: context.summaries.reduce((sum, item) => sum + item.tokens, 0) },
    { key: "messages", label: "Messages", tokens: context.tail.tokens },
  ];
}

/** How full the model's context is: {share, text, isTight}. Without a known context only the tokens. */
export function fullness(context) {
  const total = context.total_tokens;
  if (!context.context_tokens) {
    return {
      share: 0,
      isTight: false,
      text: `About ${several(total, "token")}. How much this model can read is not known.`,
    };
  }
  const share = total / context.context_tokens;
  const limit = context.usable_tokens || context.context_tokens;
  return {
    share,
    isTight: total > limit * 0.9,
    text: `About ${count(total)} of ${several(context.context_tokens, "token")}, ${percent(share)}.`,
  };
}

export function percent(share) {
  if (share > 0 && share < 0.01) return "less than 1 %";
  return `${Math.round(share * 100)} %`;
}

/** How full a block is: a share of its limit, or its tokens. */
export function usageOf(block) {
  if (!block.max_tokens) return several(block.tokens, "token");
  return `${count(block.tokens)} of ${several(block.max_tokens, "token")}, ${percent(block.tokens / block.max_tokens)}`;
}

/** The kind of a block, in the word that the model reads. */
export const kindWord = (
  block,
) => (block.is_skill ? "loadable" : block.is_searchable ? "searchable" : block.writable ? "writable" : "readonly");

const KINDS = {
  writable: "the model can write",
  readonly: "read only",
  loadable: "documents to load",
  searchable: "searchable",
};
const WHOSE = { user: "yours, in all conversations", session: "of this conversation", agent: "of the agent" };

export const kindOf = (block) => [KINDS[kindWord(block)], WHOSE[block.of]].filter(Boolean).join(", ");

const POLICIES = {
  "read-time": "Of older messages long texts and tool results are shortened for the model. What is stored stays whole.",
  "last-calls": "The model sees tool calls of the last two messages only. What is stored stays whole.",
  coding:
    "Long tool results are shortened, and of very many messages the first and the last are sent. What is stored stays whole.",
  prune: "Old tool results are let go once they take much room.",
};

/** What becomes of the messages on their way to the model; empty when nothing does. */
export const policyText = (
  context,
) => (context.policy === ""
  ? "The agent has its own rule for what of the messages is sent."
  : (POLICIES[context.policy] ?? ""));

/** What is not sent of the conversation, in a sentence; empty when everything is. */
export function leftOut(tail) {
  if (!tail.left_out) return "";
  return tail.left_out === 1
    ? "1 older message is beyond what is sent."
    : `${count(tail.left_out)} older messages are beyond what is sent.`;
}
