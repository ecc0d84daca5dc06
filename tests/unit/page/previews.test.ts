/// <reference lib="deno.ns" />
// Records, charts and kinds of previews. Run by test_pure_modules.py.

import { kindOfFile, kindOfLanguage } from "../../../static/src/app/lib/preview_kinds.ts";
import { readChart, stepsOf } from "../../../static/src/app/preview/chart_spec.ts";
import { numberIn, recordsOf, signOf, sorted } from "../../../static/src/app/preview/records.ts";
import { same } from "./making.ts";

Deno.test("records are read as spreadsheets write them", () => {
  same(recordsOf('a,b\r\n1,"two, ""2""\n2"\r\n\r\n3,'), [["a", "b"], ["1", 'two, "2"\n2'], ["3", ""]]);
  same(recordsOf("\ufeffa;b\n1,5;2"), [["a", "b"], ["1,5", "2"]]);
  same([signOf('"a,b,c";d'), signOf("a\tb"), signOf("alone")], [";", "\t", ","]);
  same(recordsOf('a,"never ends\nb'), [["a", "never ends\nb"]]);
  same([recordsOf(""), recordsOf("\n\n"), recordsOf(",")], [[], [], [["", ""]]]);
});

Deno.test("numbers in the usual spellings are sorted as numbers, empty fields last both ways", () => {
  same(["9", "1,234.5", "3,5", "-2 %", "$4", "1e3", "a1", "", "1-2"].map(numberIn), [
    9,
    1234.5,
    3.5,
    -2,
    4,
    1000,
    null,
    null,
    null,
  ]);
  const rows = [["10"], ["9"], [""], ["x"]];
  same([sorted(rows, 0, false), sorted(rows, 0, true)], [[["9"], ["10"], ["x"], [""]], [["x"], ["10"], ["9"], [""]]]);
  same(rows[0], ["10"]);
});

const chart = (more: Record<string, unknown>) =>
  readChart(JSON.stringify({
    mark: "bar",
    data: { values: [{ x: "b", y: 2 }, { x: "a", y: "3" }, { x: "b", y: 5 }] },
    encoding: { x: { field: "x" }, y: { field: "y" } },
    ...more,
  }));

Deno.test("a chart sums what shares a place, and names what it lacks", () => {
  const found = chart({});
  same([found.places, found.series[0].values, found.at], [["b", "a"], [7, 3], [0.25, 0.75]]);
  const mean = chart({ encoding: { x: { field: "x" }, y: { field: "y", aggregate: "mean" } } });
  same(mean.series[0].values, [3.5, 3]);
  const count = chart({ encoding: { x: { field: "x" }, y: { aggregate: "count" } } });
  same(count.series[0], { name: "count", values: [2, 1] });
  const times = chart({
    data: { values: [{ x: "2026-01-03", y: 1 }, { x: "2026-01-01", y: 2 }] },
    encoding: { x: { field: "x", type: "temporal" }, y: { field: "y" } },
  });
  same([times.places, times.at], [["2026-01-01", "2026-01-03"], [0, 1]]);
  for (const wrong of [{ mark: "sunburst" }, { data: {} }, { data: { values: [] } }, { encoding: {} }]) {
    let said = "";
    try {
      chart(wrong);
    } catch (error) {
      said = (error as Error).message;
    }
    same(said.includes("`"), true);
  }
});

Deno.test("an axis has round steps", () => {
  same(stepsOf([3, 7], true), [0, 2, 4, 6, 8]);
  same(stepsOf([-5, 5], true), [-6, -4, -2, 0, 2, 4, 6]);
  same(stepsOf([0.1, 0.3], false).length > 3, true);
  same(stepsOf([5], false).length >= 2, true);
});

Deno.test("kinds are found by language and by name", () => {
  same(["html", "mermaid", "python", "constructor", ""].map(kindOfLanguage), ["html", "mermaid", null, null, null]);
  same(["a.HTML", "b.vl.json", "c.json", "d.chart.json", "e", "f.tsv"].map(kindOfFile), [
    "html",
    "chart",
    null,
    "chart",
    null,
    "csv",
  ]);
});
