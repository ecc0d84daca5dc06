// A chart as a drawing: axes, bars, lines, areas or points, a legend, and the figures as a table for those who cannot see it.

import { formatLocale, t } from "../lib/i18n.ts";
import { type Chart, readChart, stepsOf } from "./chart_spec.ts";

const [WIDTH, HEIGHT] = [640, 360];
const SIDE = { top: 32, right: 16, bottom: 56, left: 64 };
const INNER = { width: WIDTH - SIDE.left - SIDE.right, height: HEIGHT - SIDE.top - SIDE.bottom };
const MOST_LABELS = 10;
const LONGEST_LABEL = 14;
const SVG = "http://www.w3.org/2000/svg";

type Attributes = Record<string, string | number>;

function make(name: string, attributes: Attributes, ...children: (Node | string)[]): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Throws an `Error` where the text asks for no chart that is known. */
export function chartOf(text: string): Node {
  const chart = readChart(text);
  const figure = document.createElement("figure");
  figure.className = "preview-chart";
  if (chart.title) {
    const title = document.createElement("figcaption");
    title.textContent = chart.title;
    figure.append(title);
  }
  if (chart.series.length > 1) figure.append(legendOf(chart));
  figure.append(drawingOf(chart), figuresOf(chart));
  return figure;
}

const amountText = (value: number): string =>
  new Intl.NumberFormat(formatLocale(), { maximumSignificantDigits: 6 }).format(value);

function drawingOf(chart: Chart): Node {
  const values = chart.series.flatMap((series) => series.values).filter((value) => value !== null);
  const steps = stepsOf(values.length ? values : [0], chart.mark === "bar" || chart.mark === "area");
  const [low, high] = [steps[0], steps.at(-1)!];
  const up = (value: number) => SIDE.top + INNER.height * (1 - (value - low) / (high - low));
  const along = (place: number) => SIDE.left + INNER.width * place;
  const lines = steps.map((step) =>
    make(
      "g",
      {},
      make("line", { class: "chart-grid", x1: SIDE.left, x2: WIDTH - SIDE.right, y1: up(step), y2: up(step) }),
      make("text", { x: SIDE.left - 8, y: up(step) + 4, "text-anchor": "end" }, amountText(step)),
    )
  );
  const name = chart.title || t("previews.chart-of", { x: chart.xTitle, y: chart.yTitle });
  return make(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": name },
    ...lines,
    ...placesOf(chart, along),
    make("text", { class: "chart-title", x: SIDE.left, y: 16 }, chart.yTitle),
    make(
      "text",
      { class: "chart-title", x: SIDE.left + INNER.width / 2, y: HEIGHT - 10, "text-anchor": "middle" },
      chart.xTitle,
    ),
    ...marksOf(chart, along, up, Math.max(low, Math.min(0, high))),
  );
}

function placesOf({ places, at }: Chart, along: (place: number) => number): Node[] {
  const every = Math.ceil(places.length / MOST_LABELS);
  return places.flatMap((place, index) => {
    if (index % every) return [];
    const short = place.length > LONGEST_LABEL ? `${place.slice(0, LONGEST_LABEL - 1)}…` : place;
    return [make("text", { x: along(at[index]), y: HEIGHT - SIDE.bottom + 20, "text-anchor": "middle" }, short)];
  });
}

function marksOf(chart: Chart, along: (place: number) => number, up: (value: number) => number, zero: number): Node[] {
  const { mark, series, at } = chart;
  const room = (INNER.width / Math.max(1, at.length)) * 0.72;
  const wide = Math.max(1, room / series.length);
  return series.map(({ name, values }, number) => {
    const group = make("g", { class: `chart-series chart-${number % 6}` });
    const points = values.flatMap((value, index) => (value === null ? [] : [{ value, x: along(at[index]), index }]));
    const titled = (index: number, value: number) =>
      make("title", {}, `${chart.places[index]}${series.length > 1 ? `, ${name}` : ""}: ${amountText(value)}`);
    if (mark === "bar") {
      for (const { value, x, index } of points) {
        const [top, bottom] = [Math.min(up(value), up(zero)), Math.max(up(value), up(zero))];
        const left = x - room / 2 + wide * number;
        group.append(
          make(
            "rect",
            { x: left, y: top, width: wide, height: Math.max(1, bottom - top), rx: 2 },
            titled(index, value),
          ),
        );
      }
      return group;
    }
    const line = points.map(({ value, x }, index) => `${index ? "L" : "M"}${x} ${up(value)}`).join("");
    if (mark === "area" && points.length) {
      group.append(
        make("path", { class: "chart-area", d: `${line}L${points.at(-1)!.x} ${up(zero)}L${points[0].x} ${up(zero)}Z` }),
      );
    }
    if (mark !== "point") group.append(make("path", { class: "chart-line", d: line }));
    for (const { value, x, index } of points) {
      group.append(make("circle", { cx: x, cy: up(value), r: mark === "point" ? 4 : 2.5 }, titled(index, value)));
    }
    return group;
  });
}

function legendOf({ series }: Chart): Node {
  const list = document.createElement("ul");
  list.className = "chart-legend";
  series.forEach(({ name }, number) => {
    const item = document.createElement("li");
    item.className = `chart-${number % 6}`;
    item.textContent = name;
    list.append(item);
  });
  return list;
}

function figuresOf({ places, series, xTitle }: Chart): Node {
  const table = document.createElement("table");
  table.className = "visually-hidden";
  const head = table.createTHead().insertRow();
  for (const name of [xTitle, ...series.map((each) => each.name)]) {
    const cell = document.createElement("th");
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  places.forEach((place, index) => {
    const row = body.insertRow();
    row.insertCell().textContent = place;
    for (const { values } of series) {
      row.insertCell().textContent = values[index] === null ? "" : amountText(values[index]!);
    }
  });
  return table;
}
