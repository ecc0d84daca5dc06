// A project: its name and colour, what all of its conversations read, its files, and the agent that they begin with.

import { useEffect, useRef, useState } from "preact/hooks";
import { fileSize } from "../lib/format.ts";
import { formatCount, type MessageKey, t } from "../lib/i18n.ts";
import { estimateTokens } from "../lib/tokens.ts";
import { messageOf } from "../net/api.ts";
import {
  addProject,
  changeProject,
  type Colour,
  fileAddress,
  type Project,
  type ProjectFile,
  type ProjectValues,
  putFile,
  readFiles,
  removeFile,
  removeProject,
} from "../net/projects_api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { useApp } from "../ui/context.ts";
import { Icon, IconButton } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { Dialog } from "./dialog.tsx";

const LONGEST_NAME = 60;
const MOST_TOKENS = 2_000; // of the API
const COLOURS: { readonly [colour in Colour]: MessageKey } = {
  grey: "projects.grey",
  red: "projects.red",
  orange: "projects.orange",
  yellow: "projects.yellow",
  green: "projects.green",
  teal: "projects.teal",
  blue: "projects.blue",
  purple: "projects.purple",
  pink: "projects.pink",
};
const EMPTY: ProjectValues = { name: "", colour: "grey", instructions: "", agent: "" };

export function EditProject({ project, close }: DialogProps<"edit-project">) {
  const app = useApp();
  const { api, dialogs } = app;
  const [values, setValues] = useState<ProjectValues>(project ?? EMPTY);
  const files = useFiles(project);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const made = useRef(project); // one that is new stays made where a file cannot be stored
  const change = (part: Partial<ProjectValues>) => setValues({ ...values, ...part });
  const submit = async () => {
    const { name, colour, instructions, agent } = values;
    if (!name.trim() || isBusy) return;
    setBusy(true);
    setProblem("");
    try {
      const written = { name, colour, instructions, agent };
      made.current = await (made.current ? changeProject(api, made.current.id, written) : addProject(api, written));
      app.list.putProject(made.current.id, made.current);
      await files.store(made.current.id);
      close({ project: made.current });
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  const remove = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("projects.remove-title", { project: project!.name }),
      text: t("projects.remove-text"),
      confirm: t("common.delete"),
      isDanger: true,
    });
    if (!isSure) return;
    try {
      await removeProject(api, project!.id);
      close({ project: null });
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <Dialog
      title={project ? t("projects.edit") : t("list.project-new")}
      actions={
        <>
          {project && (
            <button type="button" class="button project-remove" onClick={remove}>
              {t("projects.remove")}
            </button>
          )}
          <button type="submit" class="button is-primary" disabled={isBusy || isTooLong(values)}>
            {t("projects.save")}
          </button>
        </>
      }
      onSubmit={submit}
      close={close}
      isWide
    >
      <div class="project-form">
        <NameField name={values.name} write={(name) => change({ name })} />
        <Colours chosen={values.colour} choose={(colour) => change({ colour })} />
        <Instructions text={values.instructions} write={(instructions) => change({ instructions })} />
        <Files files={files} />
        <AgentField chosen={values.agent} choose={(agent) => change({ agent })} />
      </div>
      <Problem text={problem} />
    </Dialog>
  );
}

const tokensOf = (text: string): number => estimateTokens(text.trim());
const isTooLong = ({ instructions }: ProjectValues): boolean => tokensOf(instructions) > MOST_TOKENS;

function NameField({ name, write }: { name: string; write: (name: string) => void }) {
  return (
    <label class="project-field">
      <span>{t("projects.name")}</span>
      <input
        type="text"
        name="project-name"
        autocomplete="off"
        maxLength={LONGEST_NAME}
        required
        dir="auto"
        value={name}
        onInput={({ currentTarget }) => write(currentTarget.value)}
      />
    </label>
  );
}

function Instructions({ text, write }: { text: string; write: (text: string) => void }) {
  const tokens = tokensOf(text);
  return (
    <>
      <label class="project-field">
        <span>{t("projects.instructions")}</span>
        <textarea
          rows={5}
          maxLength={40_000}
          dir="auto"
          aria-describedby="project-about project-count"
          value={text}
          onInput={({ currentTarget }) => write(currentTarget.value)}
        />
      </label>
      <p id="project-about" class="muted">{t("projects.instructions-about")}</p>
      <p id="project-count" class={tokens > MOST_TOKENS ? "settings-count is-error" : "settings-count"}>
        {t("settings.tokens", { used: formatCount(tokens), count: MOST_TOKENS })}
      </p>
    </>
  );
}

function Colours({ chosen, choose }: { chosen: Colour; choose: (colour: Colour) => void }) {
  return (
    <fieldset class="project-colours">
      <legend>{t("projects.colour")}</legend>
      {(Object.entries(COLOURS) as [Colour, MessageKey][]).map(([colour, label]) => (
        <label key={colour} title={t(label)}>
          <input
            type="radio"
            class="visually-hidden"
            name="project-colour"
            checked={chosen === colour}
            onChange={() =>
              choose(colour)}
          />
          <span class="project-dot" data-colour={colour} />
          <span class="visually-hidden">{t(label)}</span>
        </label>
      ))}
    </fieldset>
  );
}

function AgentField({ chosen, choose }: { chosen: string; choose: (agent: string) => void }) {
  const { agents } = useApp();
  if (agents.length < 2 && !chosen) return null;
  const isGone = chosen !== "" && !agents.some(({ name }) => name === chosen);
  return (
    <label class="project-field">
      <span>{t("projects.agent")}</span>
      <select class="field" value={chosen} onChange={({ currentTarget }) => choose(currentTarget.value)}>
        <option value="">{t("projects.agent-usual")}</option>
        {agents.map(({ name, title }) => <option key={name} value={name}>{title}</option>)}
        {isGone && <option value={chosen}>{chosen}</option>}
      </select>
    </label>
  );
}

/** The files as they will be once it is saved. */
interface StagedFiles {
  projectId: string;
  stored: readonly ProjectFile[];
  added: readonly File[];
  error: string;
  limit: number;
  add: (files: readonly File[]) => void;
  drop: (file: File) => void;
  remove: (path: string) => void;
  store: (projectId: string) => Promise<void>;
}

function useFiles(project: Project | null): StagedFiles {
  const { api } = useApp();
  const [stored, setStored] = useState<readonly ProjectFile[]>([]);
  const [limit, setLimit] = useState(0);
  const [added, setAdded] = useState<readonly File[]>([]);
  const [gone, setGone] = useState<readonly string[]>([]);
  const [error, setError] = useState("");
  const projectId = project?.id ?? "";
  useEffect(() => {
    if (!projectId) return;
    const stop = new AbortController();
    readFiles(api, projectId, stop.signal).then(({ items, file_limit: most }) => {
      setStored(items);
      setLimit(most);
    }, (failure) => stop.signal.aborted || setError(messageOf(failure)));
    return () => stop.abort();
  }, []);
  return {
    projectId,
    stored: stored.filter(({ path }) => !gone.includes(path)),
    added,
    error,
    limit,
    add: (files) => setAdded([...added.filter((one) => !files.some(({ name }) => name === one.name)), ...files]),
    drop: (file) => setAdded(added.filter((one) => one !== file)),
    remove: (path) => setGone([...gone, path]),
    store: async (id) => {
      for (const path of gone) {
        await removeFile(api, id, path);
        setGone((paths) => paths.filter((each) => each !== path));
        setStored((items) => items.filter((item) => item.path !== path));
      }
      for (const file of added) {
        const entry = await putFile(api, id, file);
        setAdded((files) => files.filter((each) => each !== file));
        setStored((items) => [...items.filter(({ path }) => path !== entry.path), entry]);
      }
    },
  };
}

function Files({ files }: { files: StagedFiles }) {
  const { api } = useApp();
  const input = useRef<HTMLInputElement>(null);
  const [refused, setRefused] = useState("");
  const take = (chosen: readonly File[]) => {
    const large = chosen.find(({ size }) => files.limit > 0 && size > files.limit);
    setRefused(large ? t("projects.file-too-large", { name: large.name, limit: fileSize(files.limit) }) : "");
    files.add(chosen.filter((file) => file !== large));
  };
  return (
    <fieldset
      class="project-files"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        take([...event.dataTransfer?.files ?? []]);
      }}
    >
      <legend>{t("projects.files")}</legend>
      <p class="muted">{t("projects.files-about")}</p>
      <ul>
        {files.stored.map(({ path, size }) => (
          <li key={path}>
            <Icon name="file" />
            <span class="project-file">
              <a href={fileAddress(api, files.projectId, path)} download="" dir="auto">{path.replace(/^\//, "")}</a>
              <span class="muted">{fileSize(size)}</span>
            </span>
            <IconButton
              icon="bin"
              label={t("projects.file-remove", { name: path })}
              onClick={() => files.remove(path)}
            />
          </li>
        ))}
        {files.added.map((file) => (
          <li key={file.name} class="is-new">
            <Icon name="file" />
            <span class="project-file">
              <span dir="auto">{file.name}</span>
              <span class="muted">{t("projects.file-new", { size: fileSize(file.size) })}</span>
            </span>
            <IconButton
              icon="close"
              label={t("projects.file-remove", { name: file.name })}
              onClick={() => files.drop(file)}
            />
          </li>
        ))}
      </ul>
      <Problem text={files.error || refused} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t("projects.files-add")}
        onChange={({ currentTarget }) => {
          take([...currentTarget.files ?? []]);
          currentTarget.value = "";
        }}
      />
      <button type="button" class="button" onClick={() => input.current!.click()}>
        <Icon name="clip" />
        {t("projects.files-add")}
      </button>
    </fieldset>
  );
}
