/// <reference lib="deno.ns" />
// What people choose for themselves, as the page counts and shows it. Run by test_pure_modules.py.

import { dayGroup, timeLabel } from "../../../static/src/app/lib/format.ts";
import { chooseZone, ownZone } from "../../../static/src/app/lib/own_zone.ts";
import { estimateTokens } from "../../../static/src/app/lib/tokens.ts";
import type { Rule } from "../../../static/src/app/net/tools_api.ts";
import { nameOf } from "../../../static/src/app/store/remembered.ts";
import { Router } from "../../../static/src/app/store/router.ts";
import { inWords } from "../../../static/src/app/store/rule_facts.ts";
import { same } from "./making.ts";
import "../../../static/src/app/messages/later.ts";

Deno.test("tokens are counted as the server counts them", () => {
  same([estimateTokens(""), estimateTokens("I bake bread."), estimateTokens("word ".repeat(1_000))], [0, 4, 1_300]);
  same(estimateTokens("x".repeat(5_000)), 1_250);
});

/** The time without the narrow space that some data of languages have. */
const clock = (instant: string, now: Date) => timeLabel(instant, now).replace("\u202f", " ");

Deno.test("times and days go by the zone that the person has chosen", () => {
  const [late, now] = ["2026-05-20T23:30:00Z", new Date("2026-05-21T01:00:00Z")];
  chooseZone("Asia/Tokyo");
  same([ownZone(), clock(late, now), dayGroup(late, now)], ["Asia/Tokyo", "8:30 AM", "Today"]);
  chooseZone("Europe/London");
  same([clock(late, now), dayGroup(late, now)], ["12:30 AM", "Today"]);
  chooseZone("America/New_York");
  same([clock(late, now), dayGroup("2026-05-20T03:00:00Z", now)], ["7:30 PM", "Yesterday"]);
  chooseZone("");
});

Deno.test("rules are sentences", () => {
  const words = (action: string, key: string, pattern: string) => inWords({ action, key, pattern } as Rule);
  same(words("allow", "bash", "git status *"), "Runs without asking you: bash, for calls like “git status *”");
  same(words("ask", "bash", "*"), "Asks you first: bash, for every call");
  same(words("deny", "*", "*"), "Is always refused: Any tool");
  same(words("deny", "@changes", "*"), "Is always refused: Everything that changes something");
});

Deno.test("labels of memory are words", () => {
  same([nameOf("memory"), nameOf("about_me"), nameOf("-")], ["Memory", "About me", "-"]);
});

Deno.test("settings have an address for each section", () => {
  globalThis.addEventListener ??= () => {};
  const router = new Router("/chat/", () => {});
  const read = (path: string) => router.read(new URL(path, "https://example.com"));
  same(read("/chat/settings"), { page: "settings", section: "" });
  same(read("/chat/settings/you/"), { page: "settings", section: "you" });
  same(read("/chat/settings/you/more"), { page: "list" });
  same(router.address({ page: "settings", section: "" }), "/chat/settings");
  same(router.address({ page: "settings", section: "a b" }), "/chat/settings/a%20b");
});
