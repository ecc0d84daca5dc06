// The text of a file as far as it was read, from the beginning on; or that it is no text.

import type { FileEntry, FilesApi } from "../net/files_api.ts";

const PIECE = 1_000_000; // bytes
const TEXTS = /^text\/|^application\/json$/; // as the server found by looking at the bytes
const ENCODINGS = [
  { mark: [0xff, 0xfe], name: "utf-16le" },
  { mark: [0xfe, 0xff], name: "utf-16be" },
  { mark: [], name: "windows-1252" },
];

/** What the server says of a text in another encoding than UTF-8. */
interface Stored {
  encoding: string;
  canBeSaved: boolean;
}

export class FileText {
  /** Null: the file is no text. */
  readonly text: string | null;
  readonly isWhole: boolean;
  readonly version: string;
  readonly #path: string;
  readonly #bytes: number;
  readonly #decoder: TextDecoder;
  readonly #stored: Stored | null;

  constructor(entry: Pick<FileEntry, "path" | "version">, text: string | null, bytes: number, rest: {
    isWhole: boolean;
    decoder: TextDecoder;
    stored?: Stored;
  }) {
    this.text = text;
    this.isWhole = rest.isWhole;
    this.version = entry.version;
    this.#path = entry.path;
    this.#bytes = bytes;
    this.#decoder = rest.decoder;
    this.#stored = rest.stored ?? null;
  }

  /** Read the beginning. Throws an `ApiError`. */
  static async open(api: FilesApi, entry: FileEntry, signal?: AbortSignal): Promise<FileText> {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    if (!entry.size) return new FileText(entry, "", 0, { isWhole: true, decoder }); // nothing has no first byte to ask for
    const { bytes, isEnd } = await api.read(entry.path, 0, PIECE, signal);
    const text = decoded(decoder, bytes, isEnd);
    const isPlain = text !== null && !text.startsWith("\ufeff");
    if (isPlain || !TEXTS.test(entry.media_type)) {
      return new FileText(entry, text, bytes.length, { isWhole: isEnd, decoder });
    }
    if (isEnd) {
      const found = await api.text(entry.path, signal);
      const stored = { encoding: found.encoding, canBeSaved: found.can_be_saved };
      const at = { path: entry.path, version: found.version };
      return new FileText(at, found.text, bytes.length, { isWhole: true, decoder, stored });
    }
    if (text !== null) return new FileText(entry, text, bytes.length, { isWhole: false, decoder });
    const encoding = ENCODINGS.find(({ mark }) => mark.every((byte, place) => bytes[place] === byte))!;
    const other = new TextDecoder(encoding.name);
    const rest = { isWhole: isEnd, decoder: other };
    return new FileText(entry, decoded(other, bytes, isEnd), bytes.length, rest);
  }

  /** The same with the next piece of the file. */
  async more(api: FilesApi): Promise<FileText> {
    const { bytes, isEnd } = await api.read(this.#path, this.#bytes, PIECE);
    const added = decoded(this.#decoder, bytes, isEnd);
    const text = added === null || this.text === null ? null : this.text + added;
    const rest = { isWhole: isEnd, decoder: this.#decoder };
    return new FileText({ path: this.#path, version: this.version }, text, this.#bytes + bytes.length, rest);
  }

  /** Its encoding where that is not UTF-8. */
  get encoding(): string {
    return this.#stored?.encoding ?? (this.#decoder.encoding === "utf-8" ? "" : this.#decoder.encoding);
  }

  /** Whether the server can give it back its encoding. One that is in UTF-8 is written as it is. */
  get canBeSaved(): boolean {
    return this.#stored?.canBeSaved ?? !this.encoding;
  }

  /** Lines end with CR LF, all of them. A field of the page has LF only. */
  get hasCrLf(): boolean {
    return this.text !== null && this.text.includes("\r\n") && !this.hasMixedEnds;
  }

  /** Lines end in several ways, which a field of the page does not keep. */
  get hasMixedEnds(): boolean {
    const text = this.text ?? "";
    return /\r(?!\n)/.test(text) || (text.includes("\r\n") && /(^|[^\r])\n/.test(text));
  }
}

function decoded(decoder: TextDecoder, bytes: Uint8Array, isEnd: boolean): string | null {
  try {
    const text = decoder.decode(bytes, { stream: !isEnd });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
