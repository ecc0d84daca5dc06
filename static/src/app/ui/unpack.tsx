// Puts the files of an attached zip archive into the files of the conversation.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { FilesApi } from "../net/files_api.ts";
import { useApp } from "./context.ts";

export function Unpack({ url, name }: { url: string; name: string }) {
  const app = useApp();
  const [isBusy, setBusy] = useState(false);
  const { id } = follow(app.conversation).instance; // a new conversation has none yet
  if (!id) return null;
  const unpack = async () => {
    setBusy(true);
    try {
      const response = await fetch(url);
      if (!response.ok) throw new Error(t("files.unpack-gone"));
      const count = await new FilesApi(app.api, id).unpack(new File([await response.blob()], name), "/");
      app.notices.show(t("files.import-done", { count }));
      app.panel.open("files");
    } catch (error) {
      app.notices.show((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class="quiet" disabled={isBusy} onClick={unpack}>
      {t(isBusy ? "files.unpacking" : "files.unpack-attached")}
    </button>
  );
}
