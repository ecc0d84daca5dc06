// MCP servers from a configuration of another program: pasted, looked at, and added once that is confirmed. What is pasted and
// filled in may be secret: it is kept nowhere but in the form.

import { useId, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Imported, Level, PastedServer, Variable } from "../net/tools_api.ts";
import { Item, LevelChoice, useAttempt } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";
import { Problem } from "../ui/problem.tsx";

const EXAMPLE = `{"mcpServers": {"docs": {"url": "https://…"}}}`;

const SECRET = { type: "password", autocomplete: "new-password" } as const;
const OPEN = { type: "text", autocomplete: "off" } as const;

type Values = Record<string, string>;

export function ServerPaste({ tools, close }: { tools: Tools; close: () => void }) {
  const { api, instanceId } = tools;
  const [text, setText] = useState("");
  const [level, setLevel] = useState<Level>(instanceId ? "instance" : "user");
  const [found, setFound] = useState<Imported | null>(null);
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set()); // servers that are not to be added
  const [values, setValues] = useState<Values>({});
  const { problem, isBusy, attempt } = useAttempt(tools);
  const chosen = found?.servers.filter((server) => canAdd(server) && !left.has(server.name)) ?? [];
  const names = chosen.map((server) => server.name);
  const preview = (event: Event) => {
    event.preventDefault();
    setLeft(new Set());
    attempt(async () => setFound(await api.importServers(level, { text, values: {}, confirmed: false })));
  };
  const add = async (event: Event) => {
    event.preventDefault();
    let done: Imported | null = null;
    await attempt(async () => {
      done = await api.importServers(level, { text, values, names, confirmed: true });
    });
    if (!done) return;
    setFound(done);
    if ((done as Imported).servers.every((server) => server.state !== "refused" || !names.includes(server.name))) {
      close();
    }
  };
  const turn = (name: string, isOn: boolean) => {
    const next = new Set(left);
    if (isOn) next.delete(name);
    else next.add(name);
    setLeft(next);
  };
  return (
    <Item title={t("servers.paste")} close={close}>
      {found
        ? (
          <FoundForm
            {...{ found, chosen, left, turn, values, setValues, problem, isBusy }}
            onSubmit={add}
            back={() => setFound(null)}
          />
        )
        : (
          <PasteForm
            {...{ instanceId, text, setText, level, setLevel, problem, isBusy, close }}
            onSubmit={preview}
          />
        )}
    </Item>
  );
}

interface FormProps {
  problem: string;
  isBusy: boolean;
  onSubmit: (event: Event) => void;
}

interface PasteProps extends FormProps {
  instanceId: Tools["instanceId"];
  text: string;
  setText: (text: string) => void;
  level: Level;
  setLevel: (level: Level) => void;
  close: () => void;
}

function PasteForm({ instanceId, text, setText, level, setLevel, problem, isBusy, onSubmit, close }: PasteProps) {
  const id = useId();
  return (
    <form class="tools-form" onSubmit={onSubmit}>
      <p class="muted">{t("servers.paste-about")}</p>
      <label for={`${id}-text`} class="field-label">{t("servers.paste-text")}</label>
      <textarea
        id={`${id}-text`}
        class="field is-code"
        rows={10}
        required
        dir="ltr"
        autocomplete="off"
        spellcheck={false}
        placeholder={EXAMPLE}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <LevelChoice form={id} instanceId={instanceId} level={level} choose={setLevel} />
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("servers.paste-preview")}</button>
        <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

interface FoundProps extends FormProps {
  found: Imported;
  chosen: PastedServer[];
  left: ReadonlySet<string>;
  turn: (name: string, isOn: boolean) => void;
  values: Values;
  setValues: (values: Values) => void;
  back: () => void;
}

function FoundForm({ found, chosen, left, turn, values, setValues, problem, isBusy, onSubmit, back }: FoundProps) {
  return (
    <form class="tools-form" onSubmit={onSubmit}>
      <p class="muted">{t(chosen.length ? "servers.add-about" : "servers.paste-nothing")}</p>
      <ul class="tools-pasted">
        {found.servers.map((server) => (
          <PastedRow key={server.name} server={server} isOn={!left.has(server.name)} turn={turn} />
        ))}
      </ul>
      {asked(found, chosen).map(({ variable, isNeeded }) => (
        <ValueField
          key={variable.key}
          variable={variable}
          isNeeded={isNeeded}
          value={values[variable.key] ?? ""}
          set={(value) => setValues({ ...values, [variable.key]: value })}
        />
      ))}
      <Problem text={problem} />
      <p class="panel-actions">
        {chosen.length > 0 && (
          <button type="submit" class="button is-primary" disabled={isBusy}>
            {t("servers.paste-add", { count: chosen.length })}
          </button>
        )}
        <button type="button" class="button" onClick={back}>{t("servers.paste-back")}</button>
      </p>
    </form>
  );
}

const canAdd = (server: PastedServer) => server.state === "new" || server.state === "incomplete";

/** The values that the chosen servers have places for. */
function asked(found: Imported, chosen: PastedServer[]): { variable: Variable; isNeeded: boolean }[] {
  const used = new Set(chosen.flatMap((server) => server.variables));
  const missing = new Set(chosen.flatMap((server) => server.missing));
  return found.variables.filter(({ key }) => used.has(key)).map((variable) => ({
    variable,
    isNeeded: missing.has(variable.key),
  }));
}

interface RowProps {
  server: PastedServer;
  isOn: boolean;
  turn: (name: string, isOn: boolean) => void;
}

function PastedRow({ server, isOn, turn }: RowProps) {
  const notes = notesOf(server);
  const words = (
    <span class="tools-row-text">
      <bdi class="tools-name">{withoutTricks(server.name)}</bdi>
      {server.address && <code class="tools-address" dir="ltr">{withoutTricks(server.address)}</code>}
      {notes.map((note) => <span key={note} class={server.state === "refused" ? "is-error" : "muted"}>{note}</span>)}
    </span>
  );
  if (!canAdd(server)) return <li class="tools-pasted-row">{words}</li>;
  return (
    <li class="tools-pasted-row">
      <label class="ticked">
        <input
          type="checkbox"
          class="tick"
          checked={isOn}
          onChange={(event) => turn(server.name, event.currentTarget.checked)}
        />
        {words}
      </label>
    </li>
  );
}

function notesOf(server: PastedServer): string[] {
  const notes = [];
  if (server.state === "refused") notes.push(withoutTricks(server.reason));
  if (server.state === "exists") notes.push(t("servers.paste-exists"));
  if (server.state === "added") notes.push(t("servers.paste-added"));
  if (!server.enabled) notes.push(t("servers.paste-disabled"));
  if (server.exposed.length) notes.push(t("servers.paste-exposed"));
  if (server.ignored.length) {
    notes.push(t("servers.paste-ignored", { names: withoutTricks(server.ignored.join(", ")) }));
  }
  return notes;
}

interface ValueProps {
  variable: Variable;
  isNeeded: boolean;
  value: string;
  set: (value: string) => void;
}

function ValueField({ variable, isNeeded, value, set }: ValueProps) {
  const id = useId();
  const hint = [
    withoutTricks(variable.description),
    variable.default ? t("servers.paste-default", { value: withoutTricks(variable.default) }) : "",
  ].filter(Boolean).join(" ");
  const shared = { id, class: "field", required: isNeeded, "aria-describedby": hint ? `${id}-hint` : undefined };
  return (
    <p class="tools-value">
      <label for={id} class="field-label">
        <bdi>{withoutTricks(variable.key.replace(/^input:/, ""))}</bdi>
      </label>
      {variable.options.length
        ? (
          <select {...shared} value={value} onChange={(event) => set(event.currentTarget.value)}>
            <option value="" />
            {variable.options.map((option) => <option key={option} value={option}>{withoutTricks(option)}</option>)}
          </select>
        )
        : (
          <input
            {...shared}
            {...(variable.secret ? SECRET : OPEN)}
            dir="ltr"
            spellcheck={false}
            value={value}
            onInput={(event) => set(event.currentTarget.value)}
          />
        )}
      {hint && <span class="muted" id={`${id}-hint`}>{hint}</span>}
    </p>
  );
}
