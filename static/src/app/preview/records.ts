// Text with a line for each record and a sign between its fields, as spreadsheets write it (RFC 4180). Pure.

const SIGNS = [",", ";", "\t"];

/** The sign that divides the first line: the one that is there most often outside of quotes. */
export function signOf(text: string): string {
  const line = /^(?:"(?:[^"]|"")*"|[^"\n])*/.exec(text)?.[0].replace(/"(?:[^"]|"")*"/g, "") ?? "";
  const counted = SIGNS.map((sign) => ({ sign, count: line.split(sign).length }));
  return counted.reduce((most, other) => (other.count > most.count ? other : most)).sign;
}

/** All records; lines without anything are none. A quote that never ends takes the rest. */
export function recordsOf(text: string, sign = signOf(text)): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let at = text.startsWith("\ufeff") ? 1 : 0;
  const end = () => {
    if (record.length > 1 || record[0] !== "") records.push(record);
    record = [];
  };
  while (at < text.length) {
    let field = "";
    if (text[at] === '"') {
      at += 1;
      for (; at < text.length; at += 1) {
        if (text[at] !== '"') field += text[at];
        else if (text[at + 1] === '"') field += text[at++];
        else break;
      }
      at += 1;
    }
    const from = at;
    while (at < text.length && text[at] !== sign && text[at] !== "\n" && text[at] !== "\r") at += 1;
    record.push(field + text.slice(from, at));
    if (text[at] === sign) {
      at += 1;
      if (at >= text.length || text[at] === "\n" || text[at] === "\r") record.push("");
      else continue;
    }
    end();
    if (text[at] === "\r" && text[at + 1] === "\n") at += 1;
    at += 1;
  }
  if (record.length) end();
  return records;
}

/** The number that a field is, in any of the usual spellings; null where it is none. */
export function numberIn(field: string): number | null {
  const plain = field.trim().replace(/[\s\u00a0\u202f']/g, "").replace(/^[$€£]|[%€$£]$/g, "");
  const dotted = /^-?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain)
    ? plain.replace(/,/g, "")
    : plain.replace(/^(-?\d+),(\d+)$/, "$1.$2");
  return dotted !== "" && /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(dotted) ? Number(dotted) : null;
}

/** Records by a column: numbers before words, empty ones last in both directions; the order of equal ones is kept. */
export function sorted(records: readonly string[][], column: number, isDown: boolean): string[][] {
  const keyed = records.map((record) => ({
    record,
    text: record[column] ?? "",
    number: numberIn(record[column] ?? ""),
  }));
  const sign = isDown ? -1 : 1;
  keyed.sort((one, other) => {
    if (!one.text || !other.text) return Number(!one.text) - Number(!other.text);
    if (one.number !== null && other.number !== null) return sign * (one.number - other.number);
    if (one.number !== null || other.number !== null) return sign * (one.number === null ? 1 : -1);
    return sign * one.text.localeCompare(other.text);
  });
  return keyed.map(({ record }) => record);
}
