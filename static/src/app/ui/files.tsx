// Files of a message in a row: pictures in small, which open when they are pressed, everything else by name. Only files of this
// server, and data of the message itself, are shown or linked; anything else is an address in text.

import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import type { FilePart } from "../store/types.ts";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";

const Unpack = lazy(async () => (await import("./later.ts")).Unpack);
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
/** Pictures that browsers cannot show: the server has them as models get them. */
const CONVERTED = /^image\/(heic|tiff|bmp)$/;

export function Files({ parts, base }: { parts: readonly FilePart[]; base: string }) {
  return (
    <ul class="files" aria-label={t("message.files")}>
      {parts.map((part, index) => (
        <li class="file" key={`${index} ${part.url}`}>
          <File part={part} base={base} />
        </li>
      ))}
    </ul>
  );
}

function File({ part, base }: { part: FilePart; base: string }) {
  const url = typeof part.url === "string" ? part.url : "";
  const name = part.filename || part.mediaType || t("message.file");
  const isData = url.startsWith("data:");
  const isOwn = !isData && isOwnFile(url, base);
  const size = part.byteSize ? <span class="muted">{fileSize(part.byteSize)}</span> : null;
  const isConverted = isOwn && CONVERTED.test(part.mediaType ?? "");
  if (isConverted || (PICTURE.test(part.mediaType ?? "") && (isOwn || isData))) {
    const label = part.filename ? t("message.picture-named", { name: part.filename }) : t("message.picture");
    const picture = <img src={isConverted ? `${url}/view` : url} alt={label} loading="lazy" />;
    if (!isOwn) return picture;
    return <a href={url} target="_blank" rel="noopener" class="file-image" title={part.filename}>{picture}</a>;
  }
  const inside = (
    <>
      <Icon name="file" />
      <span dir="auto">{isOwn || isData ? name : `${name} ${url}`}</span>
      {size}
    </>
  );
  if (!isOwn) return <span class="file-chip">{inside}</span>;
  const view = t("message.file-view", { name });
  return (
    <span class="file-row">
      <a class="file-chip" href={`${url}/view`} target="_blank" rel="noopener" title={view}>{inside}</a>
      <a class="icon-button" href={url} download={name} aria-label={t("message.file-original", { name })}>
        <Icon name="save" />
      </a>
      {part.mediaType === "application/zip" && <Unpack url={url} name={name} />}
    </span>
  );
}

function isOwnFile(url: string, base: string): boolean {
  const address = URL.parse(url, location.href);
  return address !== null && address.origin === location.origin && address.pathname.startsWith(base);
}
