// The files of a conversation: a tree, one file, or what an answer has changed; one at a time, because the panel is narrow.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { FilesApi } from "../net/files_api.ts";
import { FileTree } from "../store/file_tree.ts";
import { FileUploads } from "../store/file_uploads.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { FileActions } from "./file_actions.ts";
import { FileReview } from "./file_review.tsx";
import { FileView } from "./file_view.tsx";
import { TreeView } from "./file_tree.tsx";
import { Failure } from "./panel.tsx";
import { BlockPreview } from "./preview_view.tsx";
import { useReading } from "../ui/reading.ts";
import { SentFiles } from "./sent_files.tsx";
import type { PanelProps } from "./registry.ts";

export function FilesPanel({ conversation }: PanelProps) {
  if (!conversation.instance.id) return <p class="muted">{t("panel.not-begun")}</p>;
  return <Files conversation={conversation} />;
}

function Files({ conversation }: PanelProps) {
  const app = useApp();
  const { id } = conversation.instance;
  const place = follow(app.files);
  const [api] = useState(() => new FilesApi(app.api, id));
  const [tree] = useState(() => new FileTree(api));
  const reading = useReading(conversation, async (signal) => {
    await tree.read(signal);
    return tree;
  });
  const [actions] = useState(() => {
    const ask = (name: string, areMore: boolean) => actions.askReplace(name, areMore);
    const uploads = new FileUploads(api, ask, () => tree.totals?.file_limit);
    const actions: FileActions = new FileActions({ app, instanceId: id, api, tree, uploads });
    return actions;
  });
  useEffect(() => place.enter(id), []);
  const isHere = place.instanceId === id || !place.instanceId;
  const path = isHere ? place.path : "";
  const last = useRef(path); // the row that gets the focus when the file is closed
  if (path) last.current = path;
  const open = (file: string) => place.open(id, file);
  const canWrite = tree.totals?.can_write ?? false;
  if (isHere && place.block) {
    return (
      <BlockPreview
        key={`${place.block.messageId} ${place.block.part} ${place.block.fence}`}
        conversation={conversation}
        place={place.block}
        close={() => open("")}
      />
    );
  }
  if (path) {
    return (
      <FileView
        key={path}
        conversation={conversation}
        path={path}
        api={api}
        actions={actions}
        canWrite={canWrite}
        close={() => open("")}
      />
    );
  }
  if (isHere && place.turnIds) {
    return (
      <FileReview
        key={place.turnIds.join()}
        conversation={conversation}
        api={api}
        turnIds={place.turnIds}
        canWrite={canWrite}
        hasRepository={tree.totals?.has_repository ?? false}
        open={open}
        close={() => place.review(id, null)}
      />
    );
  }
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("files.loading")}</p>;
  }
  return (
    <>
      <Problem text={reading.error} />
      <SentFiles conversation={conversation} api={api} tree={tree} canWrite={canWrite} />
      <TreeView tree={tree} api={api} actions={actions} open={open} last={last.current} />
    </>
  );
}
