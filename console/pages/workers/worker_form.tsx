import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask, type Schemas, type Worker } from "../../live/api.ts";
import { useDraft } from "../../live/draft.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Choice, TextField, Tick, wordsIn } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, RefusalNotice, Waiting } from "../../parts/notice.tsx";
import { say } from "../../parts/toast.tsx";
import { flat, useDepartments } from "./department_tree.ts";
import { enginesOn, usableEngines } from "./engines.ts";

interface Values {
  name: string;
  description: string;
  memory: string;
  constraints: string;
  engine: string;
  engineArgs: string;
  departments: string[];
  scopes: string;
  /** The words of what checks its work, one a line. */
  verify: string;
  workDir: string;
  runsOn: string;
}

const BLANK: Values = {
  name: "",
  description: "",
  memory: "",
  constraints: "",
  engine: "",
  engineArgs: "",
  departments: [],
  scopes: "",
  verify: "",
  workDir: "",
  runsOn: "",
};

/** A new worker, or changes to one. What is typed outlives a reload. */
export function WorkerEditPage({ params: { id = "" } }: PageProps) {
  if (!may("write:workers")) return <Empty title="You may look at workers, and not change them." />;
  if (id === "") return <WorkerForm worker={null} />;
  return <ExistingWorker id={id} />;
}

function ExistingWorker({ id }: { id: string }) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/workers/{id}", { params: { path: { id } }, signal })),
  );
  return read.data === undefined ? <Waiting refusal={read.refusal} /> : <WorkerForm worker={read.data} />;
}

function WorkerForm({ worker }: { worker: Worker | null }) {
  const [initial] = useState(() => JSON.stringify(worker === null ? BLANK : valuesOf(worker)));
  const [draft, setDraft] = useDraft(`worker.${worker?.id ?? "new"}`, initial);
  const [, navigate] = useLocation();
  // What was typed before an upgrade has fewer fields.
  const values: Values = { ...BLANK, ...JSON.parse(draft) as Partial<Values> };
  const set = (change: Partial<Values>) => setDraft(JSON.stringify({ ...values, ...change }));
  const text = (name: keyof Values, value: string) => set({ [name]: value });
  const back = worker === null ? "/console/workers" : `/console/workers/${worker.id}`;
  const { refusal, busy, submit } = useSend(async () => {
    const saved = await send(worker, values);
    setDraft(initial);
    say(worker === null ? `${saved.name} is ready` : "Saved");
    navigate(`/console/workers/${saved.id}`);
  });
  const field = (
    name: keyof Values,
    label: string,
    more: { rows?: number; hint?: string; api?: string } = {},
  ) => (
    <TextField
      label={label}
      name={more.api ?? name}
      value={String(values[name])}
      onInput={(value) => text(name, value)}
      refusal={refusal}
      required={name === "name"}
      {...(more.rows === undefined ? {} : { rows: more.rows })}
      {...(more.hint === undefined ? {} : { hint: more.hint })}
    />
  );
  return (
    <>
      <Heading
        title={worker === null ? "New worker" : `Edit ${worker.name}`}
        above={{ href: back, name: worker === null ? "Workers" : worker.name }}
      />
      <form class="form scrolled" onSubmit={submit}>
        <RefusalNotice refusal={refusal} />
        {field("name", "Name")}
        {field("description", "What it is for", { hint: "One line; the coordinator chooses by it" })}
        {field("memory", "What it knows and does", {
          rows: 6,
          hint: "Its standing instruction, in every prompt",
        })}
        {field("constraints", "What it must not do", { rows: 3 })}
        <EngineField values={values} set={set} />
        <DepartmentTicks values={values} set={set} />
        <details
          open={refusal !== null ||
            [values.scopes, values.engineArgs, values.verify, values.runsOn].some((text) => text !== "")}
        >
          <summary>More</summary>
          {field("engineArgs", "Arguments of its engines", {
            rows: 2,
            api: "engine_args",
            hint: "One engine a line, such as claude=--model opus",
          })}
          {field("scopes", "Permissions in svc", {
            hint: "Such as read:tasks write:messages. Empty: those of every worker",
          })}
          {may("write:commands") &&
            field("verify", "Check: a program that decides whether its work is good", {
              rows: 3,
              hint:
                "One word a line, no shell reads them; for tasks that name no check of their own. Empty: none",
            })}
          {field("runsOn", "Runs on", {
            api: "runs_on",
            hint: worker === null
              ? "Labels of a runner, such as macos gpu. Empty: the service's own machine"
              : "Labels of a runner, such as macos gpu. Other ones give it an empty directory, and its conversations begin anew",
          })}
          {worker === null &&
            field("workDir", "Directory", {
              api: "work_dir",
              hint: "Empty: one of its own in the service's data, or in that of the runner",
            })}
        </details>
        <div class="actions end sticky">
          <Link href={back} class="button">Leave it</Link>
          <button type="submit" class="primary" disabled={busy}>
            {worker === null ? "Make the worker" : "Save"}
          </button>
        </div>
      </form>
    </>
  );
}

interface PartProps {
  values: Values;
  set: (change: Partial<Values>) => void;
}

function EngineField({ values, set }: PartProps) {
  const labels = wordsIn(values.runsOn);
  const engines = useResource(
    ["engines", ...labels].join(" "),
    (signal) => labels.length === 0 ? usableEngines(signal) : enginesOn(labels, signal),
  ).data ?? [];
  const names = values.engine === "" || engines.includes(values.engine)
    ? engines
    : [values.engine, ...engines];
  return (
    <Choice
      label="Engine"
      value={values.engine}
      onChange={(engine) => set({ engine })}
      options={[["", "The service's default"], ...names.map((name) => [name, name] as const)]}
      hint={labels.length === 0
        ? "The program that does the thinking. Those that can be used here are listed"
        : "The program that does the thinking. Those of runners with its labels are listed"}
    />
  );
}

function DepartmentTicks({ values, set }: PartProps) {
  const places = flat(useDepartments().data ?? []);
  if (places.length === 0) return null;
  return (
    <fieldset>
      <legend>Departments</legend>
      {places.map(({ id, name, depth }) => (
        <div key={id} style={{ paddingInlineStart: `${depth * 20}px` }}>
          <Tick
            label={name}
            checked={values.departments.includes(id)}
            onChange={(on) =>
              set({
                departments: on
                  ? [...values.departments, id]
                  : values.departments.filter((one) => one !== id),
              })}
          />
        </div>
      ))}
    </fieldset>
  );
}

function valuesOf(worker: Worker): Values {
  return {
    name: worker.name,
    description: worker.description,
    memory: worker.memory,
    constraints: worker.constraints,
    engine: worker.engine,
    engineArgs: Object.entries(worker.engine_args).map(([name, text]) => `${name}=${text}`).join("\n"),
    departments: worker.departments.map(({ id }) => id),
    scopes: worker.scopes.join(" "),
    verify: wordsOf(worker.verify),
    workDir: worker.work_dir,
    runsOn: worker.runs_on.join(" "),
  };
}

async function send(worker: Worker | null, values: Values): Promise<Worker> {
  const { name, description, memory, constraints, engine, departments } = values;
  const args = argsOf(values.engineArgs);
  // An engine that is left out keeps its arguments; only an empty text takes them away (contract 3, Worker).
  for (const known of Object.keys(worker?.engine_args ?? {})) args[known] ??= "";
  const scopes = wordsIn(values.scopes);
  const command = values.verify.split("\n").map((word) => word.trim()).filter(Boolean);
  const verify = command.length === 0 ? null : { command };
  // A check that was not touched keeps its time-out and its attempts.
  const checked = values.verify === wordsOf(worker?.verify ?? null) ? {} : { verify };
  const body = {
    ...{ name, description, memory, constraints, engine, engine_args: args, departments, scopes },
    runs_on: wordsIn(values.runsOn),
    ...checked,
  } as Schemas["WorkerCreate"];
  if (worker === null) {
    return await ask(api.POST("/api/workers", { body: { ...body, work_dir: values.workDir } }));
  }
  return await ask(api.PUT("/api/workers/{id}", { params: { path: { id: worker.id } }, body }));
}

function wordsOf(verify: Worker["verify"]): string {
  return verify?.command.join("\n") ?? "";
}

function argsOf(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}
