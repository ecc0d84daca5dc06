// One extension: what it may do and what of that a person withdraws, its tools, its source, its versions and what it has called.

import { useState } from "preact/hooks";
import { fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { fileText, withoutTricks } from "../lib/readable.ts";
import type { Extension } from "../net/tools_api.ts";
import { type Permission, permissionList, SCOPES, stateOf } from "../store/extension_facts.ts";
import { useApp } from "../ui/context.ts";
import { Lines } from "../ui/lines.tsx";
import { Problem } from "../ui/problem.tsx";
import { useReturnFocus } from "../ui/return_focus.ts";
import { Value } from "../ui/value.tsx";
import { useDetail } from "./extension_detail.ts";
import { ExtensionEditor } from "./extension_form.tsx";
import { Calls, Versions } from "./extension_history.tsx";
import { Failure } from "./panel.tsx";
import { Item, Part, useAttempt } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";

interface Props {
  tools: Tools;
  extension: Extension;
  close: () => void;
}

export function ExtensionView({ tools, extension, close }: Props) {
  const attempt = useAttempt(tools);
  const [isEditing, setEditing] = useState(false);
  const edit = useReturnFocus<HTMLButtonElement>(isEditing);
  const isOwn = extension.scope === "instance" || extension.scope === "user";
  const state = stateOf(extension);
  const { api } = tools;
  if (isEditing) {
    return <ExtensionEditor tools={tools} extension={extension} close={() => setEditing(false)} />;
  }
  return (
    <Item title={extension.name} close={close}>
      <p>
        <span class={`tools-state ${state ? "is-off" : "is-good"}`} role="status">
          {state || t("extensions.enabled")}
        </span>
      </p>
      {extension.description && <p dir="auto">{withoutTricks(extension.description)}</p>}
      <p class="muted">
        {t("extensions.version", { version: withoutTricks(extension.version) })} · {t(SCOPES[extension.scope])}
      </p>
      <Problem text={attempt.problem} />
      {isOwn && (
        <p class="panel-actions">
          <button
            type="button"
            class="button"
            disabled={attempt.isBusy}
            onClick={() => attempt.attempt(() => api.changeExtension(extension, { enabled: !extension.enabled }))}
          >
            {t(extension.enabled ? "extensions.disable" : "extensions.enable")}
          </button>
          <button type="button" class="button" ref={edit} onClick={() => setEditing(true)}>{t("common.edit")}</button>
          <RemoveButton tools={tools} extension={extension} attempt={attempt} close={close} />
        </p>
      )}
      <Abilities extension={extension} />
      {isOwn && <Permissions tools={tools} extension={extension} attempt={attempt} />}
      <ToolList extension={extension} />
      {isOwn && (
        <>
          <Part title={t("extensions.source")}>{() => <Source tools={tools} extension={extension} />}</Part>
          <Part title={t("extensions.versions")} note={String(extension.number)}>
            {() => <Versions api={api} extension={extension} />}
          </Part>
          <Part title={t("extensions.calls")}>{() => <Calls api={api} extension={extension} />}</Part>
        </>
      )}
      {extension.updated_at && (
        <p class="muted" title={fullTime(extension.updated_at)}>
          {t("extensions.changed", { when: timeLabel(extension.updated_at) })}
        </p>
      )}
    </Item>
  );
}

type Attempt = ReturnType<typeof useAttempt>;

function RemoveButton(
  { tools: { api }, extension, attempt: { attempt, isBusy }, close }: Props & { attempt: Attempt },
) {
  const { dialogs } = useApp();
  const remove = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("extensions.remove-title", { name: extension.name }),
      text: t("extensions.remove-text"),
      confirm: t("extensions.remove"),
      isDanger: true,
    });
    if (isSure && await attempt(() => api.unloadExtension(extension))) close();
  };
  return <button type="button" class="button" disabled={isBusy} onClick={remove}>{t("extensions.remove")}</button>;
}

/** What it may do now, in the server's words. */
function Abilities({ extension }: { extension: Extension }) {
  return (
    <>
      <h3 class="tools-heading">{t("extensions.abilities")}</h3>
      <ul class="tools-words">
        {extension.words.map((line) => <li key={line} dir="auto">{withoutTricks(line)}</li>)}
      </ul>
    </>
  );
}

/** What its manifest asks for, one by one: a tick is what it has. */
function Permissions({ tools: { api }, extension, attempt }: Omit<Props, "close"> & { attempt: Attempt }) {
  const [wanted, setWanted] = useState<{ key: string; isGranted: boolean } | null>(null); // until the server has answered
  const permissions = permissionList(extension);
  if (!permissions.length) return null;
  const set = async (permission: Permission, isGranted: boolean) => {
    setWanted({ key: permission.key, isGranted });
    const { revision } = extension; // another person may have withdrawn another one meanwhile
    await attempt.attempt(() =>
      api.changeExtension(extension, { permissions: { ...permission.set(isGranted) }, revision })
    );
    setWanted(null);
  };
  return (
    <Part title={t("extensions.permissions")}>
      {() => (
        <>
          <p class="muted">{t("extensions.permissions-about")}</p>
          {permissions.map((permission) => (
            <label class="ticked" key={permission.key}>
              <input
                type="checkbox"
                class="tick"
                checked={wanted?.key === permission.key ? wanted.isGranted : permission.isGranted}
                disabled={attempt.isBusy}
                onChange={(event) => set(permission, event.currentTarget.checked)}
              />
              <span dir="auto">{withoutTricks(permission.text)}</span>
            </label>
          ))}
        </>
      )}
    </Part>
  );
}

function ToolList({ extension: { tools, context_labels: labels } }: { extension: Extension }) {
  return (
    <>
      <h3 class="tools-heading">{t("extensions.tools")}</h3>
      {tools.length === 0 && <p class="muted">{t("extensions.no-tools")}</p>}
      <ul class="tools-tools">
        {tools.map((tool) => (
          <li key={tool.name} class="tools-tool">
            <code>{withoutTricks(tool.name)}</code>
            <p class="muted" dir="auto">{withoutTricks(tool.description)}</p>
          </li>
        ))}
      </ul>
      {labels.length > 0 && <p class="muted">{t("extensions.blocks", { labels: withoutTricks(labels.join(", ")) })}</p>}
    </>
  );
}

function Source({ tools: { api }, extension }: Omit<Props, "close">) {
  const { detail, problem, again } = useDetail(api, extension);
  if (problem) return <Failure text={problem} again={again} />;
  if (!detail) return <p class="muted">{t("common.loading")}</p>;
  return (
    <>
      <Lines text={fileText(detail.source)} label={t("extensions.source")} language="javascript" firstLine={1} />
      <p class="muted">{t("extensions.manifest")}</p>
      <Value value={detail.manifest} />
    </>
  );
}
