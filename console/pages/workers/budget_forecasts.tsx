import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { now } from "../../live/clock.ts";
import { useAll } from "../../live/resource.ts";
import { formatUntil } from "../../parts/format.ts";
import { Meter } from "../../parts/meter.tsx";
import { LoadState } from "../../parts/notice.tsx";
import { Status } from "../../parts/status.tsx";
import { type Column, DataTable } from "../../parts/data_table.tsx";
import { calculateShare, formatAmount, formatTarget, formatUse, PERIODS } from "./budget_text.ts";
import { useDepartmentNames } from "./department_tree.ts";

type Budget = Schemas["Budget"];

/** Every budget with its use, and the expected use of its period. */
export function BudgetForecasts() {
  const read = useAll("/api/budgets", {}, /^(budget|execution)\./);
  const departments = useDepartmentNames();
  if (read.data === undefined) return <LoadState error={read.error} />;
  if (read.data.length === 0) {
    return (
      <p class="quiet">
        No budgets yet. <Link href="/console/budgets">Create one</Link> to see its forecast.
      </p>
    );
  }
  const columns: Column<Budget>[] = [
    {
      title: "Budget",
      cell: ({ name, state }) => (
        <Link href="/console/budgets" class="row-name">
          <Status value={state} bare />
          <span>{name}</span>
        </Link>
      ),
    },
    {
      title: "Applies to",
      extra: true,
      cell: ({ target, period }) => (
        <span class="quiet">{formatTarget(target, departments)}, {PERIODS[period]}</span>
      ),
    },
    {
      title: "Used",
      extra: true,
      cell: (budget) => (
        <Meter
          label={budget.name}
          share={calculateShare(budget)}
          text={formatUse(budget)}
          state={budget.state}
        />
      ),
    },
    { title: "Of limit", number: true, cell: formatUse },
    { title: "Forecast", number: true, cell: (budget) => <Forecast budget={budget} /> },
  ];
  return (
    <>
      <DataTable
        label="Budget forecasts"
        columns={columns}
        groups={[{ title: "", items: read.data }]}
        rowKey={({ id }) => id}
      />
      <p class="hint">Expected use of the whole period, at the average pace of the last 7 days.</p>
    </>
  );
}

/** The expected use, and when the limit is reached. Red when it exceeds the limit. */
export function Forecast({ budget }: { budget: Budget }) {
  const { forecast, runs_out_at, limit, unit, state } = budget;
  if (state === "unmeasured") return <span class="quiet">not measured</span>;
  const exceeds = forecast !== null && forecast > limit;
  return (
    <>
      {forecast !== null && <span class={exceeds ? "wrong" : ""}>{formatAmount(forecast, unit)}</span>}
      {runs_out_at !== null && (
        <span class={exceeds ? "wrong" : "quiet"}>
          {forecast !== null && ", "}used up {formatUntil(runs_out_at, now.value)}
        </span>
      )}
      {forecast === null && runs_out_at === null && <span class="quiet">–</span>}
    </>
  );
}
