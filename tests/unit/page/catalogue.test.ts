/// <reference lib="deno.ns" />
// The page's message catalogue: every text is used, stands in the file that its key names, and is written like the others.
// Run by test_pure_modules.py.

import { addTranslations, type Message, t, useCatalogue } from "../../../static/src/app/lib/i18n.ts";
import { en as first } from "../../../static/src/app/messages/en.ts";
import { later } from "../../../static/src/app/messages/later.ts";
import { pseudo, usePseudo } from "../../../static/src/app/messages/pseudo.ts";

const en = { ...first, ...later };
const APP = new URL("../../../static/src/app/", import.meta.url);

async function filesIn(folder: URL, ending: RegExp): Promise<URL[]> {
  const found: URL[] = [];
  for await (const entry of Deno.readDir(folder)) {
    const url = new URL(entry.name + (entry.isDirectory ? "/" : ""), folder);
    if (entry.isDirectory) found.push(...await filesIn(url, ending));
    else if (ending.test(entry.name)) found.push(url);
  }
  return found;
}

function none(wrong: string[], what: string): void {
  if (wrong.length) throw new Error(`${what}: ${wrong.join(", ")}`);
}

const textsOf = (message: unknown): string[] =>
  typeof message === "string" ? [message] : Object.values(message as Record<string, string>);

Deno.test("each key stands in the file of its area, in order", async () => {
  const wrong: string[] = [];
  for (const file of await filesIn(new URL("messages/en/", APP), /\.json$/)) {
    const area = file.pathname.split("/").at(-1)!.replace(".json", "");
    const keys = Object.keys(JSON.parse(await Deno.readTextFile(file)));
    wrong.push(...keys.filter((key) => !key.startsWith(`${area}.`)));
    wrong.push(...keys.filter((key, index) => index > 0 && keys[index - 1] >= key));
    if (!keys.length) wrong.push(file.pathname);
  }
  none(wrong, "out of place");
});

Deno.test("each text is used", async () => {
  const sources = await Promise.all((await filesIn(APP, /\.tsx?$/)).map((file) => Deno.readTextFile(file)));
  const source = sources.join("\n");
  none(Object.keys(en).filter((key) => !source.includes(`"${key}"`)), "not used");
});

const IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^;]*?\sfrom\s+)?"(\.[^"]+)"/gm;

/** A module and all that it imports, except what it imports when it is needed. */
async function importedBy(module: URL, found = new Map<string, string>()): Promise<Map<string, string>> {
  if (found.has(module.href) || !/\.tsx?$/.test(module.pathname)) return found;
  const source = await Deno.readTextFile(module);
  found.set(module.href, source);
  for (const [, path] of source.matchAll(IMPORT)) await importedBy(new URL(path, module), found);
  return found;
}

Deno.test("what is loaded at first says no text that comes later", async () => {
  const modules = await importedBy(new URL("main.tsx", APP));
  if (modules.size < 100 || [...modules.keys()].some((name) => name.endsWith("/later.ts"))) {
    throw new Error(`the imports were not followed: ${modules.size}`);
  }
  const source = [...modules.values()].join("\n");
  none(Object.keys(later).filter((key) => source.includes(`"${key}"`)), "said too early");
});

Deno.test("texts are written alike", () => {
  const isOdd = (text: string) => /\s{2}|\.\.\.|[^\\]"|'|!$/.test(text);
  none(Object.entries(en).filter(([, message]) => textsOf(message).some(isOdd)).map(([key]) => key), "odd signs");
  const plurals = Object.entries(en).filter(([, message]) => typeof message !== "string");
  const isWhole = ([, message]: [string, unknown]) =>
    ["one", "other"].every((form) => (message as Record<string, string>)[form]);
  none(plurals.filter((entry) => !isWhole(entry)).map(([key]) => key), "a form is missing");
});

Deno.test("values and plural forms are put in", () => {
  useCatalogue("en", { "common.cancel": "Give {what} up", "common.close": { one: "1 door", other: "{count} doors" } });
  const found = [
    t("common.cancel", { what: "it" }),
    t("common.close", { count: 1 }),
    t("common.close", { count: 1234 }),
  ];
  if (found.join("|") !== "Give it up|1 door|1,234 doors") throw new Error(found.join("|"));
  if (t("common.cancel") !== "Give {what} up") throw new Error("a missing value is visible as what it is");
});

Deno.test("each language has its own plural forms", () => {
  const doors: Message = { zero: "zero", one: "one", two: "two", few: "few", many: "many", other: "other" };
  const chosen = (tag: string, counts: number[]) => {
    useCatalogue(tag, { "common.close": doors });
    return counts.map((count) => t("common.close", { count })).join(" ");
  };
  const found = {
    ar: chosen("ar", [0, 1, 2, 3, 10, 11, 99, 100, 102, 103]),
    de: chosen("de", [0, 1, 2, 100]),
    es: chosen("es", [0, 1, 2, 100]),
  };
  useCatalogue("en", en);
  const wanted = {
    ar: "zero one two few few many many other other few",
    de: "other one other other",
    es: "other one other other",
  };
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(JSON.stringify(found));
});

Deno.test("a form that a language lacks is its general one", () => {
  useCatalogue("ar", { "common.close": { one: "one", other: "other" } });
  const text = t("common.close", { count: 2 });
  useCatalogue("en", en);
  if (text !== "other") throw new Error(text);
});

Deno.test("names do not turn a sentence that is read from right to left", () => {
  useCatalogue("ar", { "common.cancel": "حذف {name}؟" });
  const text = t("common.cancel", { name: "notes (1).txt" });
  useCatalogue("de", { "common.cancel": "{name} löschen?" });
  const german = t("common.cancel", { name: "notes.txt" });
  useCatalogue("en", en);
  if (text !== "حذف \u2068notes (1).txt\u2069؟") throw new Error(text);
  if (german !== "notes.txt löschen?") throw new Error(german);
});

Deno.test("what is translated later stands beside what was there", () => {
  useCatalogue("de", { "common.cancel": "Abbrechen" });
  addTranslations({ "common.close": "Schließen" });
  const found = `${t("common.cancel")} ${t("common.close")} ${t("common.delete")}`;
  useCatalogue("en", en);
  if (found !== "Abbrechen Schließen Delete") throw new Error(found);
});

Deno.test("the pseudo-language is longer and keeps the names of values", () => {
  if (pseudo("Send {name}") !== "[Šéñd {name} ~~]") throw new Error(pseudo("Send {name}"));
  usePseudo("ar-XB");
  const text = t("common.cancel");
  useCatalogue("en", en);
  if (!/^\[.*~\]$/.test(text) || text.length < "Cancel".length * 1.4) throw new Error(text);
});
