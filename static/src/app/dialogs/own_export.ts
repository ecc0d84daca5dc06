// An export of this product, seen from its content: what is in it, without importing anything.

/** What an export holds. */
export interface OwnExport {
  file: File;
  title: string;
  messageCount: number;
}

const HEAD_BYTES = 64 * 1024;
const IS_MESSAGE = /^\{"kind":\s*"message"/;

/** Look into a file; null where it is no export of this product, whatever its name. */
export async function ownExport(file: File): Promise<OwnExport | null> {
  const [first] = (await file.slice(0, HEAD_BYTES).text()).split("\n", 1);
  let head: { kind?: unknown; format?: unknown; name?: unknown };
  try {
    head = JSON.parse(first);
  } catch {
    return null; // of another product, or of none: the server says which
  }
  if (head?.kind !== "session" || typeof head.format !== "string") return null;
  const title = (typeof head.name === "string" && head.name) || file.name.replace(/\.\w+$/, "");
  return { file, title, messageCount: await countMessages(file) };
}

/** The lines that are messages, a piece at a time: an export may be large. */
async function countMessages(file: File): Promise<number> {
  let [rest, count] = ["", 0];
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return count + (IS_MESSAGE.test(rest) ? 1 : 0);
    const lines = (rest + value).split("\n");
    rest = lines.pop()!;
    count += lines.filter((line) => IS_MESSAGE.test(line)).length;
  }
}
