import { Link } from "wouter-preact";
import { useAddress } from "../../live/address.ts";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { createTimeFormat, formatCost, formatCount } from "../../parts/format.ts";
import { FilterBar } from "../../parts/listing.tsx";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { Section } from "../../parts/page.tsx";
import { type Column, DataTable } from "../../parts/data_table.tsx";
import { BudgetForecasts } from "./budget_forecasts.tsx";
import { CostsHead } from "./costs_head.tsx";

type Activity = Schemas["WorkerActivity"];
type Day = Activity["days"][number];

const SPANS: Record<string, [days: number, label: string]> = {
  "": [7, "Last 7 days"],
  fortnight: [14, "Last 14 days"],
  month: [30, "Last 30 days"],
};

interface Measure {
  label: string;
  read: (day: Day) => number;
  format: (value: number) => string;
}

const COST: Measure = { label: "Estimated cost", read: ({ cost_usd }) => cost_usd ?? 0, format: formatCost };
const MEASURES: Record<string, Measure> = {
  "": COST,
  runs: { label: "Runs", read: ({ executions }) => executions, format: formatCount },
  failed: { label: "Failed runs", read: ({ failed }) => failed, format: formatCount },
  tokens: {
    label: "Tokens",
    read: ({ input_tokens, output_tokens }) => (input_tokens ?? 0) + (output_tokens ?? 0),
    format: formatCount,
  },
  minutes: {
    label: "Minutes",
    read: ({ minutes }) => minutes,
    format: (value) => formatCount(Math.round(value)),
  },
};

export function Page() {
  const [values, change] = useAddress("span", "measure");
  const [count] = SPANS[values.span] ?? [7];
  const measure = MEASURES[values.measure] ?? COST;
  const read = useGet("/api/usage/workers", { query: { days: count } }, /^execution\.(completed|failed)$/);
  return (
    <>
      <CostsHead current="/console/costs" />
      <FilterBar
        filters={[
          {
            name: "span",
            label: "Time range",
            options: Object.entries(SPANS).map(([key, [, label]]) => [key, label] as const),
          },
          {
            name: "measure",
            label: "Measure",
            options: Object.entries(MEASURES).map(([key, { label }]) => [key, label] as const),
          },
        ]}
        values={values}
        change={change}
      />
      <div class="scrolled">
        {read.data === undefined
          ? <LoadState error={read.error} />
          : <CostTable activity={read.data} measure={measure} />}
        {hasScope("read:budgets") && (
          <Section title="Budget forecasts">
            <BudgetForecasts />
          </Section>
        )}
      </div>
    </>
  );
}

// A darker cell would make its number hard to read.
const SHADE_MAX = 45;

function CostTable(
  { activity: { days, workers }, measure }: { activity: Schemas["Activity"]; measure: Measure },
) {
  const { label, read, format } = measure;
  const sum = (list: readonly Day[]) => list.reduce((total, day) => total + read(day), 0);
  const rows = workers.filter((worker) => worker.days.length > 0)
    .toSorted((one, other) => sum(other.days) - sum(one.days));
  if (rows.length === 0) return <Empty title="No runs in this time range." />;
  const most = Math.max(...rows.flatMap((worker) => worker.days.map(read)));
  const columns: Column<Activity>[] = [
    { title: "Worker", cell: (worker) => <WorkerLink worker={worker} /> },
    { title: "Total", number: true, cell: (worker) => <strong>{format(sum(worker.days))}</strong> },
    ...days.toReversed().map((day): Column<Activity> => ({
      title: formatDay(day),
      number: true,
      cell(worker) {
        const value = sum(worker.days.filter((one) => one.day === day));
        if (value === 0) return <span class="quiet">–</span>;
        return (
          <span class="heat" style={{ "--share": `${Math.round(value / most * SHADE_MAX)}%` }}>
            {format(value)}
          </span>
        );
      },
    })),
  ];
  const allDays = rows.flatMap((worker) => worker.days);
  const totals = [
    "All workers",
    format(sum(allDays)),
    ...days.toReversed().map((day) => format(sum(allDays.filter((one) => one.day === day)))),
  ];
  const unknown = measure === COST && allDays.every(({ cost_usd }) => cost_usd === null);
  return (
    <>
      {unknown && (
        <p class="hint">
          No run reported a cost. Set <code>engines.&lt;name&gt;.prices</code> to estimate costs from tokens.
        </p>
      )}
      <DataTable
        label={`${label} by worker and day`}
        columns={columns}
        groups={[{ title: "", items: rows }]}
        rowKey={({ worker_id }) => worker_id}
        totals={totals}
      />
    </>
  );
}

function WorkerLink({ worker: { worker_id, worker_name, deleted } }: { worker: Activity }) {
  if (deleted) return <span class="quiet">{worker_name || "Deleted worker"} (deleted)</span>;
  return (
    <Link href={`/console/workers/${worker_id}`} class="row-name">
      <span>{worker_name}</span>
    </Link>
  );
}

const formatWeekday = createTimeFormat({ timeZone: "UTC", weekday: "short", day: "numeric" });

// The day is one of the service's time zone, so the browser's zone must not move it.
function formatDay(day: string): string {
  return formatWeekday(Date.parse(`${day}T00:00:00Z`));
}
