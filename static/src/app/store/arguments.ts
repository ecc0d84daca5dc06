// Arguments of a call as fields that a person can fill in: which there are by the tool's schema, and what was written in them as
// values. The server has the last word. Pure.

import { t } from "../lib/i18n.ts";
import type { Json, JsonObject } from "./types.ts";

export type FieldKind = "text" | "number" | "boolean" | "choice" | "json";

export interface Field {
  name: string;
  kind: FieldKind;
  /** What stands in the field at first; "true" and "false" for a boolean. */
  text: string;
  isRequired: boolean;
  /** Nobody has given it a value yet. */
  isMissing: boolean;
  /** An empty field means null. */
  isNullable: boolean;
  choices: readonly Json[];
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
    const kind = kindOf(own);
    return {
      name,
      kind,
      text: textOf(values[name], kind),
      isRequired: required.includes(name),
      isMissing: values[name] === undefined,
      isNullable,
      choices: Array.isArray(own.enum) ? own.enum : [],
      schema: own,
    };
  });
}

/** "A or nothing" as A. */
function narrowed(schema: JsonObject): { schema: JsonObject; isNullable: boolean } {
  const options = [schema.anyOf, schema.oneOf].find(Array.isArray)?.filter(isObject);
  if (options) {
    const others = options.filter((option) => option.type !== "null");
    if (others.length === 1 && others.length < options.length) return { schema: others[0], isNullable: true };
    return { schema: {}, isNullable: false };
  }
  if (Array.isArray(schema.type) && schema.type.length === 2 && schema.type.includes("null")) {
    return { schema: { ...schema, type: schema.type.find((type) => type !== "null") ?? "string" }, isNullable: true };
  }
  return { schema, isNullable: false };
}

function kindOf({ type, enum: choices }: JsonObject): FieldKind {
  if (Array.isArray(choices)) return "choice";
  if (type === "string") return "text";
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" ? "boolean" : "json";
}

function textOf(value: Json | undefined, kind: FieldKind): string {
  if (value === undefined || (value === null && kind !== "json")) return "";
  if (kind === "json") return JSON.stringify(value, null, 2);
  if (kind === "choice") return JSON.stringify(value);
  return String(value);
}

/** What was written in a field. */
export function parsed(field: Field, text: string): Parsed {
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
