import { RotateCcw, Square } from "lucide-preact";
import { useState } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { AnsiLine } from "../../parts/ansi_line.tsx";
import { Button } from "../../parts/button.tsx";
import { formatCost, formatCount, pluralize } from "../../parts/format.ts";
import { Markdown } from "../../parts/markdown.tsx";
import { Notice } from "../../parts/notice.tsx";
import { DetailPage, Facts, Section } from "../../parts/page.tsx";
import { CopyButton, ShortId } from "../../parts/short_id.tsx";
import { Status } from "../../parts/status.tsx";
import { Duration, ExactTime } from "../../parts/time.tsx";
import { ConversationLink } from "../chat/conversation_link.tsx";
import { formatFailure, getShownStatus } from "./failure.ts";
import { LogView } from "./log_view.tsx";

type Execution = Schemas["Execution"];

export function Page({ params: { id = "" } }: PageProps) {
  const read = useGet("/api/executions/{id}", { path: { id } }, (event) => event.execution_id === id);
  return (
    <DetailPage
      read={read}
      above={{ href: "/console/executions", name: "Runs" }}
      title={({ worker_name }) => `Run of ${worker_name}`}
      actions={(execution) => hasScope("write:executions") && <Actions execution={execution} />}
    >
      {(execution) => <Details execution={execution} />}
    </DetailPage>
  );
}

function isActive({ status }: Execution): boolean {
  return status === "pending" || status === "running";
}

function Details({ execution }: { execution: Execution }) {
  const { status, failure, error, result } = execution;
  return (
    <div class="run">
      <div class="run-main">
        {status === "failed" && (
          <div class="run-error" role="region" aria-label="Error" tabIndex={0}>
            <Notice tone="bad">
              <strong>The run {formatFailure(failure)}.</strong> <AnsiLine text={error} open="" />
            </Notice>
          </div>
        )}
        <Instruction text={execution.instruction} />
        {result !== "" && (
          <Section
            title={
              <>
                Result <CopyButton text={result} subject="result" />
              </>
            }
          >
            <Markdown text={result} />
          </Section>
        )}
        <LogView execution={execution} live={isActive(execution)} />
      </div>
      <aside aria-label="Facts">
        <ExecutionFacts execution={execution} />
      </aside>
    </div>
  );
}

const SHORT_MAX_CHARACTERS = 300;
const SHORT_MAX_LINES = 4;

/** An instruction. A long one is folded, so that the log stays on the first screen. */
function Instruction({ text }: { text: string }) {
  const [open, setOpen] = useState(false);
  const long = text.length > SHORT_MAX_CHARACTERS || text.split("\n").length > SHORT_MAX_LINES;
  return (
    <Section
      title="Instruction"
      actions={!long ? undefined : (
        <button
          type="button"
          class="small"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        >
          {open ? "Show less" : "Show all"}
        </button>
      )}
    >
      <p class={long && !open ? "prose folded" : "prose"}>{text}</p>
    </Section>
  );
}

function ExecutionFacts({ execution }: { execution: Execution }) {
  const { usage, verify, started_at } = execution;
  const { input_tokens, output_tokens, cost_usd } = usage;
  const check = verify.status === null
    ? "not finished"
    : <Status value={verify.status === "passed" ? "passed" : "rejected"} />;
  return (
    <Facts
      values={{
        "Status": <Status value={getShownStatus(execution)} />,
        "Worker": <Link href={`/console/workers/${execution.worker_id}`}>{execution.worker_name}</Link>,
        "Started": <ExactTime at={started_at ?? execution.created_at} />,
        "Duration": started_at !== null && <Duration from={started_at} to={execution.completed_at} />,
        "Engine": execution.fallback_from === ""
          ? execution.engine
          : `${execution.engine}, in place of ${execution.fallback_from}`,
        "Job": execution.launch !== null &&
          `${execution.launch.job || "without an ID"} of the launcher ${execution.launch.launcher}`,
        "Attempt": execution.attempt > 1 && String(execution.attempt),
        "Check": verify.attempts > 0 && <>{check}, {pluralize(verify.attempts, "round")}</>,
        "Tokens": (input_tokens !== null || output_tokens !== null) &&
          `${formatCount(input_tokens ?? 0)} in, ${formatCount(output_tokens ?? 0)} out`,
        "Estimated cost": cost_usd !== null && formatCost(cost_usd),
        "Task": <Link href={`/console/tasks/${execution.task_id}`}>Open task</Link>,
        "Conversation": <ConversationLink sessionKey={execution.session_key} />,
        "ID": <ShortId value={execution.id} subject="execution id" />,
      }}
    />
  );
}

function Actions({ execution }: { execution: Execution }) {
  const [, navigate] = useLocation();
  const params = { path: { id: execution.id } };
  async function retry(): Promise<void> {
    const task = await load(api.POST("/api/executions/{id}/retry", { params, body: {} }));
    navigate(`/console/tasks/${task.id}`);
  }
  if (!isActive(execution)) return <Button icon={RotateCcw} press={retry}>Run again</Button>;
  return (
    <Button
      icon={Square}
      confirm={{
        title: "Stop this run?",
        text: `${execution.worker_name} and all its processes end. Changes made so far are kept.`,
        action: "Stop run",
      }}
      press={() => load(api.POST("/api/executions/{id}/cancel", { params, body: {} }))}
      done="Stopped"
    >
      Stop
    </Button>
  );
}
