// Arguments of a call as fields that a person can fill in: which there are by the tool's schema, and what was written in them as
// values. The server has the last word. Pure.

import { t } from "../lib/i18n.ts";
import type { Json, JsonObject } from "./types.ts";

/** "choice": one of several; "choices": any number of them. */
export type FieldKind = "text" | "number" | "boolean" | "choice" | "choices" | "json";

/** A value to choose. `title`: for people, where the schema has one. */
export interface Choice {
  value: Json;
  title: string;
}

export interface Field {
  name: string;
  kind: FieldKind;
  /** What stands in the field at first; "true" and "false" for a boolean, JSON for what is chosen. */
  text: string;
  isRequired: boolean;
  /** It has no value yet. */
  isMissing: boolean;
  /** An empty field means null. */
  isNullable: boolean;
  choices: readonly Choice[];
  schema: JsonObject;
}

/** The value of a field, or why it is none. `isLeftOut`: it is empty, and the call goes without it. */
export type Parsed = { value: Json } | { isLeftOut: true } | { problem: string };

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Fields of the arguments that may be changed, in the order of the schema. */
export function fieldsOf(input: unknown, schema: JsonObject, mayEdit: boolean | readonly string[]): Field[] {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const values = isObject(input) ? input : {};
  const names = Object.keys(properties).filter((name) => mayEdit === true || (mayEdit && mayEdit.includes(name)));
  return names.map((name) => {
    const { schema: own, isNullable } = narrowed(isObject(properties[name]) ? properties[name] : {});
    const choices = choicesOf(own) ?? (own.type === "array" && isObject(own.items) ? choicesOf(own.items) : null) ?? [];
    const kind = kindOf(own, choices, values[name]);
    return {
      name,
      kind,
      text: textOf(values[name], kind),
      isRequired: required.includes(name),
      isMissing: values[name] === undefined,
      isNullable,
      choices,
      schema: own,
    };
  });
}

/** "A or nothing" as A. */
function narrowed(schema: JsonObject): { schema: JsonObject; isNullable: boolean } {
  const options = [schema.anyOf, schema.oneOf].find(Array.isArray)?.filter(isObject);
  if (options) {
    const others = options.filter((option) => option.type !== "null");
    const isNullable = others.length < options.length;
    if (others.length === 1 && isNullable) return { schema: others[0], isNullable };
    if (others.length && others.every((option) => "const" in option)) {
      return { schema: { type: schema.type ?? "string", default: schema.default ?? null, oneOf: others }, isNullable };
    }
    return { schema: {}, isNullable: false };
  }
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return { schema: { ...schema, type: schema.type.find((type) => type !== "null") ?? "string" }, isNullable: true };
  }
  return { schema, isNullable: false };
}

/** The values that a schema lists, with their titles: `enum`, with or without `enumNames`, or constants. */
function choicesOf({ enum: values, enumNames: names, oneOf, anyOf }: JsonObject): Choice[] | null {
  if (Array.isArray(values)) {
    return values.map((value, index) => ({ value, title: titleFor(Array.isArray(names) ? names[index] : "") }));
  }
  const options = [oneOf, anyOf].find(Array.isArray)?.filter(isObject);
  if (!options?.length || !options.every((option) => "const" in option)) return null;
  return options.map(({ const: value, title }) => ({ value, title: titleFor(title) }));
}

const titleFor = (title: Json | undefined): string => typeof title === "string" ? title.trim() : "";

const isAmong = (value: Json, choices: readonly Choice[]): boolean =>
  choices.some((choice) => JSON.stringify(choice.value) === JSON.stringify(value));

function kindOf({ type }: JsonObject, choices: readonly Choice[], value: Json | undefined): FieldKind {
  if (type === "array") {
    const isChosen = value === undefined || (Array.isArray(value) && value.every((each) => isAmong(each, choices)));
    return choices.length && isChosen ? "choices" : "json";
  }
  if (choices.length) return "choice";
  if (type === "string") return "text";
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" ? "boolean" : "json";
}

function textOf(value: Json | undefined, kind: FieldKind): string {
  if (value === undefined || (value === null && kind !== "json")) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "choice" || kind === "choices") return JSON.stringify(value);
  return String(value);
}

/** What was written in a field. */
export function parsed(field: Field, text: string): Parsed {
  if (field.kind === "choices") return parsedChoices(field, text);
  const isEmpty = text.trim() === "";
  if (isEmpty && field.kind !== "text") {
    if (field.isNullable) return { value: null };
    return field.isRequired ? { problem: t("calls.needed") } : { isLeftOut: true };
  }
  switch (field.kind) {
    case "text":
      return parsedText(field, text);
    case "number":
      return parsedNumber(field.schema, text);
    case "boolean":
      return { value: text === "true" };
    default:
      return parsedJson(text);
  }
}

function parsedText({ schema, isRequired, isMissing, isNullable, text: before }: Field, text: string): Parsed {
  if (text === "" && isNullable) return { value: null };
  if (text === "" && isRequired && isMissing) return { problem: t("calls.needed") };
  if (text === "" && !isRequired && before === "") return { isLeftOut: true };
  const { minLength, maxLength } = schema;
  if (typeof minLength === "number" && text.length < minLength) {
    return { problem: text === "" ? t("calls.needed") : t("calls.too-short", { count: minLength }) };
  }
  if (typeof maxLength === "number" && text.length > maxLength) {
    return { problem: t("calls.too-long", { count: maxLength }) };
  }
  return { value: text };
}

function parsedNumber({ type, minimum, maximum }: JsonObject, text: string): Parsed {
  const value = Number(text.trim().replace(",", "."));
  if (!Number.isFinite(value)) return { problem: t("calls.not-a-number") };
  if (type === "integer" && !Number.isInteger(value)) return { problem: t("calls.not-whole") };
  if (typeof minimum === "number" && value < minimum) return { problem: t("calls.too-small", { least: minimum }) };
  if (typeof maximum === "number" && value > maximum) return { problem: t("calls.too-large", { most: maximum }) };
  return { value };
}

/** The values that are chosen in a field of several. */
export const chosenIn = (text: string): Json[] => text === "" ? [] : JSON.parse(text) as Json[];

function parsedChoices({ schema, isRequired, isNullable, text: before }: Field, text: string): Parsed {
  const value = chosenIn(text);
  if (!value.length && before === "" && !isRequired) return isNullable ? { value: null } : { isLeftOut: true };
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && value.length < minItems) {
    return { problem: t("calls.too-few", { count: minItems }) };
  }
  if (typeof maxItems === "number" && value.length > maxItems) {
    return { problem: t("calls.too-many", { count: maxItems }) };
  }
  return { value };
}

function parsedJson(text: string): Parsed {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { problem: t("calls.not-json", { reason: (error as Error).message }) };
  }
}

/** The whole input with what was written in the fields, or a problem for each field that has one. */
export function edited(
  input: unknown,
  fields: readonly Field[],
  texts: ReadonlyMap<string, string>,
): { input: JsonObject; problems: Map<string, string> } {
  const made: JsonObject = isObject(input) ? { ...input } : {};
  const problems = new Map<string, string>();
  for (const field of fields) {
    const result = parsed(field, texts.get(field.name) ?? field.text);
    if ("problem" in result) problems.set(field.name, result.problem);
    else if ("isLeftOut" in result) delete made[field.name];
    else made[field.name] = result.value;
  }
  return { input: made, problems };
}
