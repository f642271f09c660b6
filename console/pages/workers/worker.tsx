import { MessageCircle, Pause, Pencil, Play, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button, LinkButton } from "../../parts/button.tsx";
import { pluralize } from "../../parts/format.ts";
import { Empty, Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts, type NamedFacts, Section } from "../../parts/page.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ExecutionList } from "../work/execution_row.tsx";
import { listPlacement, MoveForm, REMOTE_DIRECTORY } from "./placement.tsx";
import { WorkerBudgets } from "./worker_budgets.tsx";
import { WorkerContexts } from "./worker_contexts.tsx";
import { formatEnv, formatField, WORKER_FIELDS } from "./worker_fields.ts";
import { listIsolation } from "./worker_isolation.tsx";

type Worker = Schemas["Worker"];

const RUNS_SHOWN = 10;

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet(
    "/api/workers/{id}",
    { path: { id } },
    (event) => event.worker_id === id && /^(worker|execution)\./.test(event.kind),
  );
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/workers", name: "Workers" }}
      title={({ name }) => name}
      actions={(worker) => <Actions worker={worker} />}
    >
      {(worker) => (
        <>
          {worker.description !== "" && <p class="lead">{worker.description}</p>}
          <WorkerState worker={worker} />
          {WORKER_FIELDS.filter(({ show, name }) => show === "section" && worker[name] !== "").map((
            field,
          ) => (
            <Section key={field.name} title={field.label}>
              <p class="prose">{formatField(field, worker)}</p>
            </Section>
          ))}
          <LatestRuns id={id} />
          <WorkerBudgets worker={worker} />
          <WorkerContexts workerId={id} />
        </>
      )}
    </DetailPage>
  );
}

function Actions({ worker: { id, name, paused } }: { worker: Worker }) {
  const [, navigate] = useLocation();
  const params = { path: { id } };
  async function talk(): Promise<void> {
    const session = await load(api.POST("/api/local/sessions", { body: { worker_id: id } }));
    navigate(`/console/chat/${session.id}`);
  }
  return (
    <>
      <Button scope="write:chat" class="primary" icon={MessageCircle} press={talk}>Talk</Button>
      {hasScope("write:workers") && (
        <>
          <LinkButton href={`/console/workers/${id}/edit`} icon={Pencil}>Edit</LinkButton>
          <Button
            icon={paused ? Play : Pause}
            press={() => load(api.PUT("/api/workers/{id}", { params, body: { paused: !paused } }))}
          >
            {paused ? "Resume" : "Pause"}
          </Button>
          <Button
            class="danger"
            icon={Trash2}
            label={`Delete ${name}`}
            title="Delete"
            confirm={{
              title: `Delete ${name}?`,
              text: "Its tasks and schedules are cancelled, and its current runs are stopped. " +
                "Its history and its directory are kept.",
              action: "Delete worker",
            }}
            press={() => load(api.DELETE("/api/workers/{id}", { params }))}
            done={`${name} deleted`}
            after={(succeeded) => succeeded && navigate("/console/workers")}
          />
        </>
      )}
    </>
  );
}

function WorkerState({ worker }: { worker: Worker }) {
  const { id } = worker;
  const status = useGet("/api/workers/{id}/status", { path: { id } }, (event) => event.worker_id === id).data;
  const [moving, setMoving] = useState(false);
  const variables = formatEnv(worker);
  const facts = {
    Status: <Status value={worker.status} />,
    Engine: (
      <>
        {worker.engine || `${status?.engine ?? ""} (default)`} <span class="quiet">{status?.version}</span>
      </>
    ),
    Waiting: status && pluralize(status.pending, "task"),
    Scheduled: status && pluralize(status.scheduled, "task"),
    Departments: worker.departments.map(({ name }) => name).join(", "),
    ...listFieldFacts(worker),
    ...listIsolation(worker),
    Gateways: worker.gateways.join(", "),
    Fallback: worker.fallback && "Other engines may replace its own",
    "MCP servers": Object.keys(worker.mcp).join(", "),
    Skills: worker.skills.map(({ name, ref }) => `${name} (${ref.slice(0, 10)})`).join(", "),
    [VARIABLES]: hasScope("write:commands") && variables !== "" && <code>{variables}</code>,
    ...listPlacement(worker, () => setMoving(true)),
    Created: <Ago at={worker.created_at} />,
    ID: <ShortId value={id} subject="worker id" />,
  };
  return (
    <>
      {status?.usable === false && (
        <Notice tone="warn">
          <strong>The worker cannot run.</strong> {status.detail}
        </Notice>
      )}
      <Facts values={facts} wide={WIDE} />
      {moving && <MoveForm worker={worker} onClose={() => setMoving(false)} />}
    </>
  );
}

const CODE_FIELDS = WORKER_FIELDS.filter(({ show }) => show === "code").map(({ label }) => label);
const VARIABLES = "Variables";
const WIDE = [...CODE_FIELDS, VARIABLES, "Directory", REMOTE_DIRECTORY];

function listFieldFacts(worker: Worker): NamedFacts {
  const fields = WORKER_FIELDS.filter(({ show }) => show === "fact" || show === "code");
  return Object.fromEntries(fields.map((field) => {
    const text = formatField(field, worker) || (field.none ?? "");
    return [
      field.label,
      CODE_FIELDS.includes(field.label) && text !== "" ? <code key="code">{text}</code> : text,
    ];
  }));
}

function LatestRuns({ id }: { id: string }) {
  const list = useGet(
    "/api/workers/{id}/executions",
    { path: { id }, query: { page_size: RUNS_SHOWN } },
    (event) => event.worker_id === id && event.kind.startsWith("execution."),
  );
  return (
    <Section title="Latest runs">
      <ExecutionList list={list} empty={<Empty title="No runs yet." />} />
      {list.data !== undefined && list.data.length > 0 && (
        <p>
          <Link href={`/console/executions?worker=${id}`}>All runs</Link>
        </p>
      )}
    </Section>
  );
}
