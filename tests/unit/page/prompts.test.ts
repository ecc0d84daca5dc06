/// <reference lib="deno.ns" />
// Saved prompts as text. Run by test_pure_modules.py.

import { filled, placesOf, promptsFor } from "../../../static/src/app/store/prompt_words.ts";

function same(got: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(got), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${one} is not ${other}`);
}

Deno.test("places are named by people, each once; code and JSON have none", () => {
  same(placesOf("Dear {name}, {name} and {Größe in cm}"), ["name", "Größe in cm"]);
  same(placesOf('{"a": 1} {} {1} { b } {{c}} ${d} {e\nf}'), ["c", "d"]);
  same(placesOf(Array.from({ length: 30 }, (_, at) => `{p${at}}`).join("")).length, 20);
});

Deno.test("values stand in their places, and what has none stays", () => {
  same(filled("Dear {name}, {topic}. {name}!", { name: "{topic}", topic: "" }), "Dear {topic}, {topic}. {topic}!");
});

Deno.test("a word after a slash finds names that begin with it, then those that hold it", () => {
  const prompts = ["A letter", "Letter", "Other"].map((name) => ({ name }));
  const found = (typed: string) => promptsFor(typed, prompts).map(({ name }) => name);
  same(found("/LET"), ["Letter", "A letter"]);
  same(found("/"), ["A letter", "Letter", "Other"]);
  same(found("let"), []);
  same(found("/etc/hosts"), []);
  same(found("/let\n"), []);
});
