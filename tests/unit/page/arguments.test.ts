/// <reference lib="deno.ns" />
// Arguments of calls as people read and change them. Run by test_pure_modules.py.

import { edited, type Field, fieldsOf, parsed } from "../../../static/src/app/store/arguments.ts";
import { hintOf, humanised, titleOfTool } from "../../../static/src/app/store/tool_words.ts";
import type { JsonObject, ToolPart } from "../../../static/src/app/lib/parts.ts";
import { same } from "./making.ts";

const schema: JsonObject = {
  type: "object",
  required: ["order", "amount", "tags"],
  properties: {
    order: { type: "string", minLength: 1, maxLength: 5 },
    amount: { type: "number", minimum: 0, maximum: 100 },
    count: { type: "integer" },
    reason: { type: "string", enum: ["late", "broken"] },
    notify: { type: "boolean", default: true },
    note: { anyOf: [{ type: "string" }, { type: "null" }] },
    tags: { type: "array", items: { type: "string" } },
    other: { type: ["integer", "null"] },
  },
};
const input = { order: "A-17", amount: 12.5, tags: ["x"], hidden: 1 };
const fields = fieldsOf(input, schema, true);
const field = (name: string): Field => fields.find((item) => item.name === name)!;
const problem = (name: string, text: string): string => {
  const result = parsed(field(name), text);
  return "problem" in result ? result.problem : JSON.stringify(result);
};

Deno.test("fields follow the schema, and only those that may be changed are there", () => {
  same(fields.map((item) => `${item.name} ${item.kind}`), [
    "order text",
    "amount number",
    "count number",
    "reason choice",
    "notify boolean",
    "note text",
    "tags json",
    "other number",
  ]);
  same(fieldsOf(input, schema, ["amount", "nothing"]).map((item) => item.name), ["amount"]);
  same(fieldsOf(input, schema, false), []);
  same(fields.map((item) => item.text), ["A-17", "12.5", "", "", "", "", '[\n  "x"\n]', ""]);
  same([field("note").isNullable, field("other").isNullable, field("order").isNullable], [true, true, false]);
});

Deno.test("what was written becomes a value, or is refused in words", () => {
  same(problem("order", "B"), '{"value":"B"}');
  same(problem("order", ""), "This can’t be empty.");
  same(problem("order", "too long"), "Write at most 5 characters.");
  same(problem("amount", "7,5"), '{"value":7.5}');
  same(problem("amount", "lots"), "Write a number.");
  same(problem("amount", ""), "This can’t be empty.");
  same(problem("amount", "101"), "Write 100 or less.");
  same(problem("amount", "-1"), "Write 0 or more.");
  same(problem("count", "1.5"), "Write a whole number.");
  same(problem("count", ""), '{"isLeftOut":true}');
  same(problem("reason", '"late"'), '{"value":"late"}');
  same(problem("notify", "false"), '{"value":false}');
  same(problem("note", ""), '{"value":null}');
  same(problem("other", ""), '{"value":null}');
  same(problem("tags", "[1, 2]"), '{"value":[1,2]}');
  same(problem("tags", "[1").startsWith("This isn’t valid JSON: "), true);
});

Deno.test("what is not touched stays as it was, what is emptied goes", () => {
  same(edited(input, fieldsOf(input, schema, ["amount"]), new Map([["amount", "7"]])).input, { ...input, amount: 7 });
  const counted = { ...input, count: 3 };
  const emptied = edited(counted, fieldsOf(counted, schema, ["count"]), new Map([["count", " "]]));
  same([emptied.input, emptied.problems.size], [input, 0]);
  same([...edited(input, fields, new Map([["amount", "x"]])).problems.keys()], ["amount"]);
});

Deno.test("a tool has a title for people: its own, that of its question, or its name in words", () => {
  const part = (more: Partial<ToolPart>) => ({ type: "tool-search_orders", toolCallId: "c", ...more }) as ToolPart;
  same(titleOfTool(part({})), "Search orders");
  same(titleOfTool(part({ title: "Orders" })), "Orders");
  same(titleOfTool(part({ approval: { id: "a", descriptor: { title: "Look up orders" } } })), "Look up orders");
  same([humanised("getWeather"), humanised("pay"), humanised("mcp.read-file"), humanised("run_SQL")], [
    "Get weather",
    "Pay",
    "Mcp read file",
    "Run SQL",
  ]);
});

Deno.test("the first short value tells one call from the next", () => {
  const hint = (value: unknown) => hintOf({ type: "tool-x", toolCallId: "c", state: "input-available", input: value });
  same([hint({ flag: true, place: " Ghent \n" }), hint({}), hint("x"), hint({ n: 5 })], ["Ghent", "", "", "5"]);
  same(hint({ path: "src/a/rather/long/path/of/some/module.py" }), "…/some/module.py");
  same(hint({ text: "x".repeat(80) }).length, 60);
});
