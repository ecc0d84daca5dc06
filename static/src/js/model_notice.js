// Which model answers, and what follows from that: a small one says that it is small, a missing one says what to set.

import { h, iconButton, setText } from "./dom.js";
import { recall, remember } from "../app/lib/storage.ts";

/** `elements`: {banner, name}. `model`: {name, kind, is_small, hint}. */
export function showModel(elements, model) {
  setText(elements.name, model?.name && model.kind !== "none" ? model.name : "No model");
  elements.banner.hidden = true;
  if (!model) return;
  if (model.kind === "none") return fill(elements.banner, "is-missing", noModel(model));
  if (model.is_small && recall("small-model-known") !== model.name) {
    fill(elements.banner, "is-small", smallModel(elements.banner, model));
  }
}

function fill(banner, className, nodes) {
  banner.className = `banner ${className}`;
  banner.replaceChildren(...nodes);
  banner.hidden = false;
}

const HOW =
  "Set OPENAI_API_KEY, or OPENAI_BASE_URL for any compatible server, and THINK_MODEL=provider/model, then start again.";

function smallModel(banner, model) {
  const close = iconButton("close", "Dismiss", () => {
    remember("small-model-known", model.name);
    banner.hidden = true;
  });
  const more = h("details", {}, h("summary", { text: "Connect a better one" }), h("p", { text: model.hint || HOW }));
  const text = h(
    "p",
    {},
    h("strong", { text: model.name }),
    " answers here: a small model on this machine’s processor. It shows how things work and is often wrong.",
  );
  return [h("div", {}, text, more), close];
}

function noModel(model) {
  return [
    h(
      "div",
      {},
      h("p", {}, h("strong", { text: "No model is connected, so nothing can answer yet." })),
      h("p", { text: model.hint || HOW }),
      h("p", {
        class: "muted",
        text:
          "What you write is kept. A model server such as Ollama that runs on this machine is found at the next start.",
      }),
    ),
  ];
}
