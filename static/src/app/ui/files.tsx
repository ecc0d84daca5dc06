// Files of a message in a row: pictures in small, which open when they are pressed, everything else by name. Only files of this
// server, and data of the message itself, are shown or linked; anything else is an address in text.

import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { isKept } from "../lib/kept_files.ts";
import type { FilePart } from "../store/types.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";

const Unpack = lazy(async () => (await import("../later/views.ts")).Unpack);
const PDF = "application/pdf"; // the browser has a viewer for it
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
/** Pictures that browsers cannot show: the server has them as models get them. */
const CONVERTED = /^image\/(heic|tiff|bmp)$/;

export function Files({ parts, base }: { parts: readonly FilePart[]; base: string }) {
  const app = useApp();
  const enlarge = (event: MouseEvent, part: FilePart) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return; // in a tab of its own, as any link
    event.preventDefault();
    const pictures = parts.flatMap((each) => pictureOf(each, base) ?? []);
    const first = pictures.findIndex(({ href }) => href === part.url);
    const link = event.currentTarget as HTMLElement;
    app.dialogs.ask("picture", { pictures, first })
      .then(() => setTimeout(() => link.focus())); // once the dialog is gone
  };
  return (
    <ul class="files" aria-label={t("message.files")}>
      {parts.map((part, index) => (
        <li class="file" key={`${index} ${part.url}`}>
          <File part={part} base={base} enlarge={(event) => enlarge(event, part)} />
        </li>
      ))}
    </ul>
  );
}

/** A picture of this server, which can be shown large; null for everything else. */
function pictureOf({ url, filename = "", mediaType = "" }: FilePart, base: string) {
  if (typeof url !== "string" || !isOwnFile(url, base)) return null;
  if (CONVERTED.test(mediaType)) return { src: `${url}/view`, href: url, name: filename };
  return PICTURE.test(mediaType) ? { src: url, href: url, name: filename } : null;
}

interface FileProps {
  part: FilePart;
  base: string;
  enlarge: (event: MouseEvent) => void;
}

function File({ part, base, enlarge }: FileProps) {
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
    return (
      <a href={url} target="_blank" rel="noopener" class="file-image" title={part.filename} onClick={enlarge}>
        {picture}
      </a>
    );
  }
  const inside = (
    <>
      <Icon name="file" />
      <span dir="auto">{isOwn || isData || isKept(url) ? name : `${name} ${url}`}</span>
      {size}
    </>
  );
  if (!isOwn) return <span class="file-chip">{inside}</span>;
  const view = part.mediaType === PDF ? name : t("message.file-view", { name });
  return (
    <span class="file-row">
      <a
        class="file-chip"
        href={part.mediaType === PDF ? url : `${url}/view`}
        target="_blank"
        rel="noopener"
        title={view}
      >
        {inside}
      </a>
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
