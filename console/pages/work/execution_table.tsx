import { RotateCcw, Square } from "lucide-preact";
import { api, load, type Schemas } from "../../live/api.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { formatCost, pluralize, takeFirstLine } from "../../parts/format.ts";
import type { Selection } from "../../parts/selection.ts";
import { Status } from "../../parts/status.tsx";
import type { TableSpec } from "../../parts/table.tsx";
import { Ago, Duration } from "../../parts/time.tsx";
import { applyToEach, BulkBar } from "./bulk_bar.tsx";
import { formatErrorLine, getShownStatus } from "./failure.ts";

type Execution = Schemas["Execution"];

/** The columns of the runs. */
export function buildExecutionTable(selection: Selection | undefined): TableSpec<Execution> {
  return {
    id: "runs",
    key: ({ id }) => id,
    href: ({ id }) => `/console/executions/${id}`,
    name: ({ instruction }) => takeFirstLine(instruction, 60),
    selection,
    columns: [
      {
        ...{ id: "run", title: "Run", width: "minmax(200px, 2fr)" },
        cell: (execution) => (
          <>
            <Status value={getShownStatus(execution)} bare /> {takeFirstLine(execution.instruction)}
          </>
        ),
      },
      {
        ...{ id: "worker", title: "Worker", width: "minmax(70px, 120px)", optional: true },
        cell: ({ worker_name }) => worker_name,
      },
      {
        ...{ id: "engine", title: "Engine", width: "minmax(60px, 80px)", optional: true },
        cell: ({ engine }) => engine,
      },
      {
        ...{ id: "started", title: "Started", width: "92px", optional: true },
        cell: ({ started_at, created_at }) => <Ago at={started_at ?? created_at} />,
      },
      {
        ...{ id: "duration", title: "Duration", width: "96px", optional: true, number: true },
        cell: ({ status, started_at, completed_at }) => (
          <Duration from={started_at} to={status === "running" ? null : completed_at ?? started_at} />
        ),
      },
      {
        ...{ id: "cost", title: "Cost", width: "70px", optional: true, number: true },
        cell: ({ usage: { cost_usd } }) => cost_usd === null ? "–" : formatCost(cost_usd),
      },
      {
        ...{ id: "error", title: "Error", width: "minmax(120px, 1.3fr)", optional: true },
        cell: (execution) => {
          const line = formatErrorLine(execution);
          return line !== "" && <span class="bad-text" title={line}>{line}</span>;
        },
      },
    ],
  };
}

interface BulkProps {
  items: readonly Execution[];
  selection: Selection;
  reload: () => void;
}

export function ExecutionBulkBar({ items, selection, reload }: BulkProps) {
  if (!hasScope("write:executions")) return null;
  const chosen = items.filter(({ id }) => selection.ids.has(id));
  const active = chosen.filter(({ status }) => status === "pending" || status === "running");
  const ended = chosen.filter(({ status }) => status === "completed" || status === "failed");
  const after = () => (selection.clear(), reload());
  return (
    <BulkBar selection={selection}>
      {ended.length > 0 && (
        <Button
          class="small"
          icon={RotateCcw}
          press={() => retryEach(ended)}
          after={after}
        >
          Run {ended.length} again
        </Button>
      )}
      {active.length > 0 && (
        <Button
          class="small"
          icon={Square}
          press={() => stopEach(active)}
          after={after}
        >
          Stop {active.length}
        </Button>
      )}
    </BulkBar>
  );
}

/** Runs each of these runs again, after a question. The retry of a run whose worker was deleted fails, and the others start. */
export function retryEach(executions: readonly Execution[]): Promise<boolean> {
  const count = executions.length;
  const only = executions.every(({ status }) => status === "failed") ? "failed run" : "run";
  return applyToEach(
    executions,
    {
      title: `Run ${pluralize(count, only)} again?`,
      text: "Each run gets a new task with the same instruction, and is charged again.",
      action: `Run ${count} again`,
    },
    ({ id }) => load(api.POST("/api/executions/{id}/retry", { params: { path: { id } }, body: {} })),
    (started, all) => `Started ${started} of ${all} runs again`,
  );
}

function stopEach(executions: readonly Execution[]): Promise<boolean> {
  const count = pluralize(executions.length, "run");
  return applyToEach(
    executions,
    {
      title: `Stop ${count}?`,
      text: "The workers and all their processes end. Changes made so far are kept.",
      action: `Stop ${count}`,
    },
    ({ id }) => load(api.POST("/api/executions/{id}/cancel", { params: { path: { id } }, body: {} })),
    (stopped, all) => `Stopped ${stopped} of ${all} runs`,
  );
}
