// Pictures over the whole page: one at a time, with arrow keys among those that stand together. A press shows the picture in its own
// size, and another one fits it in again.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Icon, IconButton } from "../ui/icon.tsx";

export function Picture({ pictures, first, close }: DialogProps<"picture">) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [at, setAt] = useState(first);
  const [isWhole, setWhole] = useState(true);
  const { src, href, name } = pictures[at];
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  const go = (step: number) => {
    setAt((at + step + pictures.length) % pictures.length);
    setWhole(true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const back = document.dir === "rtl" ? 1 : -1;
    const step = { ArrowLeft: back, ArrowRight: -back }[event.key];
    if (step === undefined || pictures.length < 2) return;
    event.preventDefault();
    go(step);
  };
  const label = name || t("pictures.picture");
  return (
    <dialog
      ref={dialog}
      class="picture-dialog"
      aria-label={label}
      onKeyDown={onKeyDown}
      onCancel={(event) => {
        event.preventDefault();
        close(null);
      }}
      onClick={(event) => event.target === dialog.current && close(null)}
    >
      <header>
        <p dir="auto">{label}</p>
        {pictures.length > 1 && (
          <>
            <IconButton icon="back" label={t("pictures.before")} onClick={() => go(-1)} />
            <span class="muted">{t("pictures.count", { number: at + 1, count: pictures.length })}</span>
            <IconButton icon="right" label={t("pictures.after")} onClick={() => go(1)} />
          </>
        )}
        <a class="icon-button" href={href} download="" aria-label={t("pictures.save")} title={t("pictures.save")}>
          <Icon name="save" />
        </a>
        <IconButton icon="close" label={t("common.close")} onClick={() => close(null)} />
      </header>
      <div class="picture-stage">
        <button
          type="button"
          class={isWhole ? "picture-zoom" : "picture-zoom is-large"}
          aria-pressed={!isWhole}
          aria-label={t("pictures.own-size")}
          onClick={() => setWhole(!isWhole)}
        >
          <img src={src} alt={label} />
        </button>
      </div>
    </dialog>
  );
}
