// An orchestrator without a chat, and its workers: every page that shows it has the same state and the same relay, a late
// one from the beginning.

import { type FormEvent, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import { useAgentChat } from "@cloudflare/ai-chat/react";
import { useAgent, useAgentToolEvents } from "agents/react";
import { name, server, token } from "./shared/place.ts";
import { Conversation, PartView } from "./shared/view.tsx";

interface Worker {
  agent: string;
  name: string;
  status: string;
  turns: number;
}

interface Work {
  id: string;
  about: string;
  status: string;
  result: { ok: boolean; text: string } | null;
}

interface Opened {
  agent: string;
  name: string;
}

const address = { host: new URL(server).host, agent: "orchestrator", name, query: { token } };
const REPORT = "report";
const WORKERS = [["researcher", "Researcher"], ["writer", "Writer"], [REPORT, "Both: a report"]];

function App() {
  const [opened, setOpened] = useState<Opened | null>(null);
  return (
    <Suspense fallback={<p className="empty">Loading…</p>}>
      {opened ? <Child {...opened} onBack={() => setOpened(null)} /> : <Lead onOpen={setOpened} />}
    </Suspense>
  );
}

function Lead({ onOpen }: { onOpen: (worker: Opened) => void }) {
  const agent = useAgent<{ workers: Worker[]; work: Work[] }>(address);
  const { runsById } = useAgentToolEvents({ agent });
  const runs = Object.values(runsById);
  const begin = (worker: string, task: string) =>
    worker === REPORT ? agent.call("report", [task]) : agent.call("assign", [worker, task]);
  return (
    <>
      <header>
        <h1>Orchestrator</h1>
        <Registry workers={agent.state?.workers ?? []} />
      </header>
      <main>
        <Assign onAssign={begin} />
        <WorkList work={agent.state?.work ?? []} onStop={(id) => agent.call("stop", [id])} />
      </main>
      <aside className="aside" aria-labelledby="workers">
        <h2 id="workers">Workers</h2>
        <ul>
          {runs.map((run) => <Run key={run.runId} run={run} onOpen={onOpen} />)}
        </ul>
      </aside>
    </>
  );
}

function WorkList({ work, onStop }: { work: Work[]; onStop: (id: string) => void }) {
  if (work.length === 0) {
    return <p className="empty">Give it something to do. The work goes on if you close the page.</p>;
  }
  return (
    <ol aria-label="Work">
      {work.map((each) => (
        <li key={each.id} className="work">
          <h2>{each.about}</h2>
          <p className="faint">{each.result?.ok === false ? "failed" : each.status}</p>
          {each.result && <p className="text">{each.result.text}</p>}
          {(each.status === "pending" || each.status === "running") && (
            <button
              type="button"
              className="quiet"
              aria-label={`Stop: ${each.about}`}
              onClick={() => onStop(each.id)}
            >
              Stop
            </button>
          )}
        </li>
      ))}
    </ol>
  );
}

function Registry({ workers }: { workers: Worker[] }) {
  if (workers.length === 0) return <p className="faint">There are no workers yet.</p>;
  const busy = workers.filter((worker) => worker.status !== "idle").length;
  const answers = workers.reduce((sum, worker) => sum + worker.turns, 0);
  return <p className="faint" data-registry>Known: {workers.length} · busy: {busy} · answers: {answers}</p>;
}

type Runs = ReturnType<typeof useAgentToolEvents>["runsById"];

function Run({ run, onOpen }: { run: Runs[string]; onOpen: (worker: Opened) => void }) {
  const who = String(run.display?.name ?? run.agentType);
  return (
    <li className="run">
      <details open={run.status === "running"}>
        <summary>{who} · {run.status}</summary>
        {run.display?.task ? <p className="text faint">{String(run.display.task)}</p> : null}
        {run.progress && <progress aria-label={`Progress of ${who}`} value={run.progress.fraction} />}
        {run.parts.map((part, index) => <PartView key={index} part={part} onDecide={() => {}} />)}
        {run.error && <p className="text">{run.error}</p>}
        <p className="decide">
          <button
            type="button"
            className="quiet"
            aria-label={`Open the conversation of ${who}`}
            onClick={() => onOpen({ agent: run.agentType, name: run.runId })}
          >
            Open the conversation
          </button>
        </p>
      </details>
    </li>
  );
}

function Assign({ onAssign }: { onAssign: (worker: string, task: string) => Promise<unknown> }) {
  const [task, setTask] = useState("");
  const [worker, setWorker] = useState("researcher");
  const [refusal, setRefusal] = useState("");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setRefusal("");
    try {
      await onAssign(worker, task);
      setTask("");
    } catch (error) {
      setRefusal(String((error as Error).message ?? error));
    }
  };
  return (
    <form className="edit" onSubmit={submit} aria-label="Give a task to a worker">
      <label htmlFor="worker">Worker</label>
      <select id="worker" value={worker} onChange={(event) => setWorker(event.target.value)}>
        {WORKERS.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
      </select>
      <label htmlFor="task">Task</label>
      <textarea id="task" rows={1} value={task} placeholder="Task" onChange={(event) => setTask(event.target.value)} />
      <button type="submit" className="quiet" disabled={!task.trim()}>Give it</button>
      {refusal && <p role="alert">{refusal}</p>}
    </form>
  );
}

function Child({ agent: route, name: child, onBack }: Opened & { onBack: () => void }) {
  const agent = useAgent({ ...address, sub: [{ agent: route, name: child }] });
  const chat = useAgentChat({ agent });
  return (
    <Conversation
      title={`A ${route}`}
      messages={chat.messages}
      isBusy={chat.isServerStreaming || chat.status === "submitted" || chat.status === "streaming"}
      error={chat.error}
      onSend={(text) => chat.sendMessage({ text })}
      onStop={() => chat.stop()}
      onAgain={() => chat.regenerate()}
      onDecide={(id, approved) => chat.addToolApprovalResponse({ id, approved })}
    >
      <aside className="aside" aria-label="Where this is">
        <button type="button" className="quiet" onClick={onBack}>Back to the orchestrator</button>
      </aside>
    </Conversation>
  );
}

createRoot(document.getElementById("root")!).render(<App />);
