// Checks of the page's modules that touch no document. Run by test_pure_modules.py with the Deno of the wheel.

import { withoutMarkup } from "../../../static/src/app/lib/markup.ts";
import {
  countdown,
  dayGroup,
  duration,
  fileSize,
  money,
  roughMoney,
  usageFacts,
} from "../../../static/src/app/lib/format.ts";
import { turnFacts } from "../../../static/src/app/store/turn_sum.ts";
import { isLongText } from "../../../static/src/app/lib/long_text.ts";

function same(found, wanted) {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} is not ${b}`);
}

Deno.test("durations, sizes and days as people read them", () => {
  same([0, 850, 3200, 48_000, 125_000].map(duration), ["1 ms", "850 ms", "3.2 s", "48 s", "2 min 5 s"]);
  same([999, 12_345, 3_400_000, 5_368_709_120].map(fileSize), ["999 B", "12 kB", "3.4 MB", "5.4 GB"]);
  const now = new Date(2026, 4, 20, 12);
  const ago = (days) => dayGroup(new Date(2026, 4, 20 - days, 23), now);
  same([0, 1, 7, 30].map(ago), ["Today", "Yesterday", "Previous 7 days", "Previous 30 days"]);
});

Deno.test("what is left of a limit is counted down by the second", () => {
  same([42_000, 41_001, 1, 0, 725_000, 3_725_000].map(countdown), ["0:42", "0:42", "0:01", "0:00", "12:05", "1:02:05"]);
});

Deno.test("an estimate has two digits", () => {
  same([0.000189, 0.0018, 0.25, 12.6].map(roughMoney), ["$0.00019", "$0.0018", "$0.25", "$13"]);
});

Deno.test("what a turn took: what is not known is not said", () => {
  const bare = { status: "completed", model: "m", input_tokens: 0, output_tokens: 0, duration_ms: null };
  same([turnFacts(bare).short, turnFacts(bare).long], ["", "m; 0 tokens read; 0 written"]);
  const rich = {
    status: "aborted",
    model: "m",
    input_tokens: 30,
    output_tokens: 12,
    cached_tokens: 20,
    reasoning_tokens: 5,
    step_count: 3,
    duration_ms: 2100,
  };
  same(turnFacts(rich).short, "stopped");
  same(
    turnFacts(rich).long,
    "m; 2.1 s; 30 tokens read, 20 of them from the cache; 12 written, 5 of them thought; 3 steps",
  );
});

Deno.test("long texts: by characters or by lines", () => {
  same([
    isLongText("x".repeat(4000)),
    isLongText("x".repeat(4001)),
    isLongText("\n".repeat(39)),
    isLongText("\n".repeat(40)),
  ], [false, true, false, true]);
});

Deno.test("titles hold no marks of Markdown", () => {
  same(
    withoutMarkup("# Plan **this** with `code` and [a link](https://example.com/a_b)"),
    "Plan this with code and a link",
  );
  same(withoutMarkup("```js\nlet x;\n```"), "let x;\n");
  same(withoutMarkup("***both*** ~~gone~~ _slanted_\n- item"), "both gone slanted\nitem");
  same(withoutMarkup("call `f(**x)`, **bold with `code`**"), "call f(**x), bold with code");
  for (const text of ["2 * 3 * 4 and a_b_c", "f(*args, **options): __init__", "**never closed", "C# is -1"]) {
    same(withoutMarkup(text), text);
  }
});

Deno.test("costs have the digits that it takes to see them, and none where nothing is paid", () => {
  same(["0", "1.5", "0.1234", "0.00123", "0.0000012"].map(money), ["$0.00", "$1.50", "$0.12", "$0.0012", "$0.000001"]);
  same(
    turnFacts({ status: "completed", model: "m", input_tokens: 2, output_tokens: 1, cost: "0.0200000000" }).short,
    "$0.0200",
  );
  same(
    turnFacts({ status: "completed", model: "m", input_tokens: 2, output_tokens: 1, cost: "0E-10" }).short,
    "",
  );
  same(
    usageFacts({ total: { input_tokens: 1200, output_tokens: 30, cost: "0.5" } }),
    "The conversation so far: 1,200 tokens read, 30 written, $0.50",
  );
});
