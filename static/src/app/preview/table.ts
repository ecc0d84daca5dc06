// Records as a table: its first rows, sorted by the column that is pressed.

import { formatCount, t } from "../lib/i18n.ts";
import { numberIn, recordsOf, sorted } from "./records.ts";

const MOST_ROWS = 1_000;
const MOST_COLUMNS = 200;

/** The first record is the head. */
export function tableOf(text: string): Node {
  const [head = [], ...records] = recordsOf(text);
  const columns = Math.min(
    MOST_COLUMNS,
    Math.max(head.length, ...records.slice(0, MOST_ROWS).map((row) => row.length)),
  );
  const box = document.createElement("div");
  box.className = "preview-table";
  const note = document.createElement("p");
  note.className = "muted";
  note.textContent = records.length > MOST_ROWS
    ? t("previews.first-rows", { shown: formatCount(MOST_ROWS), all: formatCount(records.length) })
    : t("previews.rows", { all: formatCount(records.length) });
  const table = document.createElement("table");
  const body = document.createElement("tbody");
  const numeric = Array.from({ length: columns }, (_, column) => isNumeric(records, column));
  const show = (rows: readonly string[][]) =>
    body.replaceChildren(...rows.slice(0, MOST_ROWS).map((row) => rowOf(row, numeric)));
  table.append(headOf(head, numeric, (column, isDown) => show(sorted(records, column, isDown))), body);
  show(records);
  box.append(note, table);
  return box;
}

const LOOKED_AT = 200;

const isNumeric = (records: readonly string[][], column: number): boolean => {
  const values = records.slice(0, LOOKED_AT).map((row) => row[column] ?? "").filter(Boolean);
  return values.length > 0 && values.every((value) => numberIn(value) !== null);
};

function headOf(
  names: readonly string[],
  numeric: readonly boolean[],
  sort: (column: number, isDown: boolean) => void,
): Node {
  const head = document.createElement("thead");
  const row = head.insertRow();
  numeric.forEach((isNumber, column) => {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.ariaSort = "none";
    if (isNumber) cell.className = "is-number";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = names[column] || t("previews.column", { number: column + 1 });
    button.addEventListener("click", () => {
      const isDown = cell.ariaSort === "ascending";
      for (const other of row.cells) other.ariaSort = "none";
      cell.ariaSort = isDown ? "descending" : "ascending";
      sort(column, isDown);
    });
    cell.append(button);
    row.append(cell);
  });
  return head;
}

function rowOf(record: readonly string[], numeric: readonly boolean[]): HTMLTableRowElement {
  const row = document.createElement("tr");
  numeric.forEach((isNumber, column) => {
    const cell = row.insertCell();
    cell.dir = "auto";
    if (isNumber) cell.className = "is-number";
    cell.textContent = record[column] ?? "";
  });
  return row;
}
