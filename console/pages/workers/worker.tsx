import { MessageCircle, Pause, Pencil, Play, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask, askPage, type Worker } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { manyText } from "../../parts/format.ts";
import { Absent, Heading } from "../../parts/page.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ExecutionRow } from "../work/execution_row.tsx";
import { Remembered } from "./worker_contexts.tsx";
import { MoveForm, WhereFacts } from "./placement.tsx";
import { WorkerBudgets } from "./worker_budgets.tsx";

const RUNS_SHOWN = 10;

const ABOVE = { href: "/console/workers", name: "Workers" };

/** One worker: what it is, whether it can run, and what it has done. */
export function WorkerPage({ params: { id = "" } }: PageProps) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/workers/{id}", { params: { path: { id } }, signal })),
    (event) => event.worker_id === id && /^(worker|execution)\./.test(event.kind),
  );
  const worker = read.data;
  if (worker === undefined) return <Absent refusal={read.refusal} above={ABOVE} />;
  return (
    <>
      <Heading title={worker.name} above={ABOVE}>
        <WorkerActions worker={worker} />
      </Heading>
      <div class="scrolled">
        {worker.description !== "" && <p class="lead">{worker.description}</p>}
        <WorkerState worker={worker} />
        <WorkerText title="What it knows and does" text={worker.memory} />
        <WorkerText title="What it must not do" text={worker.constraints} />
        <LatestRuns id={id} />
        <WorkerBudgets worker={worker} engine={worker.engine} />
        <Remembered worker={worker} />
      </div>
    </>
  );
}

function WorkerActions({ worker }: { worker: Worker }) {
  const { id, name, paused } = worker;
  const [, navigate] = useLocation();
  const path = { id };
  async function talk(): Promise<void> {
    await attempt(async () => {
      const made = await ask(
        api.POST("/api/local/sessions", { body: { worker_id: id } }),
      );
      navigate(`/console/chat/${made.id}`);
    });
  }
  const pause = () =>
    attempt(() => ask(api.PUT("/api/workers/{id}", { params: { path }, body: { paused: !paused } })));
  async function remove(): Promise<void> {
    const yes = await confirmed({
      title: `Delete ${name}?`,
      text:
        "Its tasks are cancelled, schedules included, and what it runs is ended. Its history and its directory stay.",
      action: "Delete the worker",
    });
    if (
      yes &&
      await attempt(() => ask(api.DELETE("/api/workers/{id}", { params: { path } })), `${name} is deleted`)
    ) {
      navigate("/console/workers");
    }
  }
  return (
    <>
      {may("write:chat") && (
        <Act class="primary" run={() => talk()}>
          <MessageCircle size={16} aria-hidden="true" /> Talk
        </Act>
      )}
      {may("write:workers") && (
        <>
          <Link href={`/console/workers/${id}/edit`} class="button">
            <Pencil size={16} aria-hidden="true" /> Edit
          </Link>
          <Act run={() => pause()}>
            {paused
              ? (
                <>
                  <Play size={16} aria-hidden="true" /> Resume
                </>
              )
              : (
                <>
                  <Pause size={16} aria-hidden="true" /> Pause
                </>
              )}
          </Act>
          <Act
            class="danger"
            run={() => remove()}
            label={`Delete ${name}`}
            title="Delete"
          >
            <Trash2 size={16} aria-hidden="true" />
          </Act>
        </>
      )}
    </>
  );
}

function WorkerState({ worker }: { worker: Worker }) {
  const { id } = worker;
  const status = useResource(
    id,
    (signal) => ask(api.GET("/api/workers/{id}/status", { params: { path: { id } }, signal })),
    (event) => event.worker_id === id,
  ).data;
  const args = Object.entries(worker.engine_args);
  const [moving, setMoving] = useState(false);
  return (
    <>
      {status?.usable === false && (
        <div class="notice warn">
          <p>
            <strong>It cannot run now.</strong> {status.detail}
          </p>
        </div>
      )}
      <Facts>
        <Fact name="Status">
          <Status of={worker.status} />
        </Fact>
        <Fact name="Engine">
          {worker.engine || `${status?.engine ?? ""} (the default)`}{" "}
          <span class="quiet">{status?.version}</span>
        </Fact>
        <Fact name="Waiting">{status && manyText(status.pending, "task")}</Fact>
        <Fact name="Scheduled">{status && manyText(status.scheduled, "task")}</Fact>
        <Fact name="Departments">{worker.departments.map(({ name }) => name).join(", ")}</Fact>
        <Fact name="Permissions">
          {worker.scopes.length === 0 ? "those of every worker" : worker.scopes.join(" ")}
        </Fact>
        {args.map(([engine, text]) => (
          <Fact key={engine} name={`Arguments for ${engine}`}>
            <code>{text}</code>
          </Fact>
        ))}
        <Fact name="Check, after each run" wide>
          {worker.verify !== null && <code>{worker.verify.command.join(" ")}</code>}
        </Fact>
        <WhereFacts worker={worker} move={() => setMoving(true)} />
        <Fact name="Made">
          <Ago at={worker.created_at} />
        </Fact>
        <Fact name="Id">
          <ShortId value={id} what="worker id" />
        </Fact>
      </Facts>
      {moving && <MoveForm worker={worker} onClose={() => setMoving(false)} />}
    </>
  );
}

function WorkerText({ title, text }: { title: string; text: string }) {
  if (text === "") return null;
  return (
    <section>
      <h2>{title}</h2>
      <p class="prose">{text}</p>
    </section>
  );
}

function LatestRuns({ id }: { id: string }) {
  const read = useResource(
    id,
    (signal) => {
      const params = { path: { id }, query: { page_size: RUNS_SHOWN } };
      return askPage(api.GET("/api/workers/{id}/executions", { params, signal }));
    },
    (event) => event.worker_id === id && event.kind.startsWith("execution."),
  );
  const runs = read.data?.items;
  return (
    <section>
      <h2>Latest runs</h2>
      {runs === undefined
        ? <Waiting refusal={read.refusal} />
        : runs.length === 0
        ? <Empty title="It has not run yet." />
        : (
          <>
            <div class="list">{runs.map((one) => <ExecutionRow key={one.id} execution={one} />)}</div>
            <p>
              <Link href={`/console/executions?worker=${id}`}>All its runs</Link>
            </p>
          </>
        )}
    </section>
  );
}
