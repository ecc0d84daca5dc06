// Rules about calls in words. Pure.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { Rule } from "../net/tools_api.ts";

export const ACTIONS: Record<Rule["action"], MessageKey> = {
  allow: "rules.allow",
  ask: "rules.ask",
  deny: "rules.deny",
};

const WHOSE: Record<Rule["level"], MessageKey> = {
  site: "rules.of-site",
  class: "rules.of-agent",
  owner: "rules.of-all",
  conversation: "rules.of-this",
};

export const MOODS: Record<Rule["action"], string> = { allow: "is-good", ask: "is-off", deny: "is-bad" };

/** Whose a rule is. */
export const whose = (rule: Rule): string => t(WHOSE[rule.level]);

/** The calls that it is about, in one line. */
export function aboutOf({ key, pattern }: Pick<Rule, "key" | "pattern">): string {
  const tool = key === "@changes" ? t("rules.changes") : key === "*" ? t("rules.any-tool") : key;
  const calls = pattern === "@secrets" ? t("rules.secrets") : pattern;
  return calls === "*" ? tool : t("rules.about-calls", { tool, calls });
}

const SENTENCES: Record<Rule["action"], MessageKey> = {
  allow: "rules.allow-words",
  ask: "rules.ask-words",
  deny: "rules.deny-words",
};

/** A rule as a sentence: what happens, with which calls. */
export const inWords = (rule: Rule): string => t(SENTENCES[rule.action], { calls: callsOf(rule) });

function callsOf({ key, pattern }: Rule): string {
  if (key === "@changes" || pattern === "@secrets") return aboutOf({ key, pattern });
  const tool = key === "*" ? t("rules.any-tool") : key;
  if (pattern !== "*") return t("rules.calls-like", { tool, calls: pattern });
  return key === "*" ? tool : t("rules.every-call", { tool });
}

/** Whether they begin plan mode. */
export const isPlan = (rule: Rule): boolean =>
  rule.level === "conversation" && rule.key === "@changes" && rule.pattern === "*" && rule.action === "deny";
