// What a chart is asked for with: a small part of Vega-Lite (docs/howto/preview.md). Pure.

import { numberIn } from "./records.ts";

export type Mark = "bar" | "line" | "area" | "point";
export type Row = Readonly<Record<string, unknown>>;

export interface Series {
  name: string;
  /** One for each place on the x axis; null where there is none. */
  values: (number | null)[];
}

export interface Chart {
  title: string;
  mark: Mark;
  /** Labels of the places on the x axis, in order. */
  places: string[];
  /** Where each place is, from 0 to 1; even steps unless they are numbers or times. */
  at: number[];
  series: Series[];
  xTitle: string;
  yTitle: string;
}

interface Channel {
  field: string;
  type: string;
  title: string;
  aggregate: string;
}

const MARKS: readonly string[] = ["bar", "line", "area", "point"];
const MOST_ROWS = 5_000;
const MOST_SERIES = 12;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Throws an `Error` that names what is missing. */
export function readChart(text: string): Chart {
  const spec: unknown = JSON.parse(text);
  if (!isRecord(spec)) throw new Error("a chart is an object with `mark`, `data` and `encoding`");
  const mark = String(isRecord(spec.mark) ? spec.mark.type : spec.mark);
  if (!MARKS.includes(mark)) throw new Error(`\`mark\` is one of ${MARKS.join(", ")}`);
  const rows = isRecord(spec.data) && Array.isArray(spec.data.values) ? spec.data.values.filter(isRecord) : null;
  if (!rows) throw new Error("`data` has its rows in `values`");
  if (!rows.length) throw new Error("`data.values` has no rows");
  const encoding = isRecord(spec.encoding) ? spec.encoding : {};
  const [x, y, color] = ["x", "y", "color"].map((name) => channelOf(encoding[name]));
  if (!x) throw new Error("`encoding.x` names a `field`");
  if (!y) throw new Error("`encoding.y` names a `field`, or an `aggregate`");
  const title = typeof spec.title === "string" ? spec.title : "";
  return {
    title,
    mark: mark as Mark,
    ...pointsOf(rows.slice(0, MOST_ROWS), x, y, color),
    xTitle: x.title,
    yTitle: y.title,
  };
}

function channelOf(value: unknown): Channel | null {
  if (!isRecord(value) || (typeof value.field !== "string" && value.aggregate !== "count")) return null;
  const field = typeof value.field === "string" ? value.field : "";
  const text = (name: string) => (typeof value[name] === "string" ? value[name] as string : "");
  return {
    field,
    type: text("type"),
    title: text("title") || field || text("aggregate"),
    aggregate: text("aggregate"),
  };
}

const label = (value: unknown): string => (value === null || value === undefined ? "" : String(value));
const amount = (value: unknown): number | null => (typeof value === "number" ? value : numberIn(label(value)));

function pointsOf(rows: readonly Row[], x: Channel, y: Channel, color: Channel | null) {
  const places = [...new Set(rows.map((row) => label(row[x.field])))];
  const measures = measured(places, x.type);
  const order = measures
    ? places.map((_, index) => index).sort((a, b) => measures[a] - measures[b])
    : places.map((_, i) => i);
  const names = color ? [...new Set(rows.map((row) => label(row[color.field])))].slice(0, MOST_SERIES) : [y.title];
  const groups = new Map<string, number[]>();
  for (const row of rows) {
    const value = y.aggregate === "count" ? 1 : amount(row[y.field]);
    if (value === null) continue;
    const key = JSON.stringify([label(row[x.field]), color ? label(row[color.field]) : y.title]);
    const found = groups.get(key);
    if (found) found.push(value);
    else groups.set(key, [value]);
  }
  const series = names.map((name) => ({
    name,
    values: order.map((index) => combined(groups.get(JSON.stringify([places[index], name])), y.aggregate)),
  }));
  const [first, last] = measures ? [measures[order[0]], measures[order.at(-1)!]] : [0, 0];
  const at = order.map((index, step) =>
    measures && last > first ? (measures[index] - first) / (last - first) : (step + 0.5) / order.length
  );
  return { places: order.map((index) => places[index]), at, series };
}

/** The places as numbers or times where they are such and are said to be. */
function measured(places: readonly string[], type: string): number[] | null {
  if (type !== "quantitative" && type !== "temporal") return null;
  const values = places.map((place) => (type === "temporal" ? Date.parse(place) : amount(place) ?? NaN));
  return values.some(Number.isNaN) ? null : values;
}

function combined(values: number[] | undefined, aggregate: string): number | null {
  if (!values) return null;
  const sum = values.reduce((total, value) => total + value, 0);
  if (aggregate === "mean" || aggregate === "average") return sum / values.length;
  if (aggregate === "min") return Math.min(...values);
  if (aggregate === "max") return Math.max(...values);
  return sum;
}

/** Round steps of an axis over these values, about five of them; zero is one where it is near. */
export function stepsOf(values: readonly number[], needsZero: boolean): number[] {
  const low = Math.min(...values, ...(needsZero ? [0] : []));
  const high = Math.max(...values, ...(needsZero ? [0] : []));
  const span = high - low || Math.abs(high) || 1;
  const raw = span / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= raw)!;
  const from = Math.floor(low / step);
  const to = Math.max(from + 1, Math.ceil(high / step));
  return Array.from({ length: to - from + 1 }, (_, index) => Number(((from + index) * step).toPrecision(12)));
}
