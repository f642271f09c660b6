import { RotateCcw, Square } from "lucide-preact";
import { Link, useLocation } from "wouter-preact";
import { api, ask, type Execution } from "../../live/api.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { AnsiLine } from "../../parts/ansi_line.tsx";
import { confirmed } from "../../parts/dialog.tsx";
import { Fact, Facts } from "../../parts/facts.tsx";
import { costText, countText } from "../../parts/format.ts";
import { Absent, Heading } from "../../parts/page.tsx";
import { Markdown } from "../../parts/markdown.tsx";
import { CopyButton, ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago, Lasted } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { CheckFact } from "./check_fact.tsx";
import { failureWord } from "./failure.ts";
import { LogView } from "./log_view.tsx";

const ABOVE = { href: "/console/executions", name: "Runs" };

/** One run of a worker: how it stands, what it was told, what came of it, and its log (contract 17). */
export function ExecutionPage({ params: { id = "" } }: PageProps) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/executions/{id}", { params: { path: { id } }, signal })),
    (event) => event.execution_id === id,
  );
  const execution = read.data;
  if (execution === undefined) return <Absent refusal={read.refusal} above={ABOVE} />;
  const open = execution.status === "pending" || execution.status === "running";
  return (
    <>
      <Heading
        title={`Run of ${execution.worker_name}`}
        above={ABOVE}
      >
        {!open && may("write:executions") && <RunAgain id={id} />}
        {open && may("write:executions") && (
          <Act run={() => stop(execution)}>
            <Square size={16} aria-hidden="true" /> Stop
          </Act>
        )}
      </Heading>
      <div class="scrolled">
        <ExecutionFacts execution={execution} />
        {execution.status === "failed" && (
          <div class="notice bad">
            <p>
              <strong>
                It {execution.failure === "cancelled" ? "was cancelled" : failureWord(execution.failure)}.
              </strong>{" "}
              <AnsiLine text={execution.error} open="" />
            </p>
          </div>
        )}
        <section>
          <h2>Instruction</h2>
          <p class="prose">{execution.instruction}</p>
        </section>
        {execution.result !== "" && (
          <section>
            <h2>
              Result <CopyButton text={execution.result} what="result" />
            </h2>
            <Markdown text={execution.result} />
          </section>
        )}
        <LogView
          executionId={id}
          live={open}
          atEnd={open || execution.status === "failed"}
          checked={execution.verify.attempts > 0}
        />
      </div>
    </>
  );
}

function ExecutionFacts({ execution }: { execution: Execution }) {
  const { usage, status, failure } = execution;
  const tokens = usage.input_tokens === null && usage.output_tokens === null
    ? null
    : `${countText(usage.input_tokens ?? 0)} in, ${countText(usage.output_tokens ?? 0)} out`;
  return (
    <Facts>
      <Fact name="Status">
        <Status of={failure === "cancelled" ? "cancelled" : status} />
      </Fact>
      <Fact name="Worker">
        <Link href={`/console/workers/${execution.worker_id}`}>{execution.worker_name}</Link>
      </Fact>
      <Fact name="Started">
        <Ago at={execution.started_at ?? execution.created_at} />
      </Fact>
      <Fact name="Took">
        {execution.started_at !== null && <Lasted from={execution.started_at} to={execution.completed_at} />}
      </Fact>
      <Fact name="Engine">{execution.engine}</Fact>
      <Fact name="Attempt">{execution.attempt > 1 ? String(execution.attempt) : ""}</Fact>
      <CheckFact verify={execution.verify} />
      <Fact name="Tokens">{tokens}</Fact>
      <Fact name="Cost, estimated">{usage.cost_usd === null ? null : costText(usage.cost_usd)}</Fact>
      <Fact name="Task">
        <Link href={`/console/tasks/${execution.task_id}`}>open the task</Link>
      </Fact>
      <Fact name="Conversation">
        <ConversationLink sessionKey={execution.session_key} />
      </Fact>
      <Fact name="Id">
        <ShortId value={execution.id} what="execution id" />
      </Fact>
    </Facts>
  );
}

function RunAgain({ id }: { id: string }) {
  const [, navigate] = useLocation();
  async function again(): Promise<void> {
    await attempt(async () => {
      const task = await ask(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} }));
      navigate(`/console/tasks/${task.id}`);
    });
  }
  return (
    <Act run={() => again()}>
      <RotateCcw size={16} aria-hidden="true" /> Run again
    </Act>
  );
}

async function stop({ id, worker_name }: Execution): Promise<void> {
  const yes = await confirmed({
    title: "Stop this run?",
    text: `${worker_name} and every program that it started are ended. What it has changed so far stays.`,
    action: "Stop the run",
  });
  if (yes) {
    await attempt(
      () => ask(api.POST("/api/executions/{id}/cancel", { params: { path: { id } }, body: {} })),
      "Stopped",
    );
  }
}
