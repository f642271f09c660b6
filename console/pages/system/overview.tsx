import { Link } from "wouter-preact";
import type { Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { formatCount, formatTime } from "../../parts/format.ts";
import { LoadState, Notice } from "../../parts/notice.tsx";
import { Facts, Section } from "../../parts/page.tsx";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { ExecutionList } from "../work/execution_row.tsx";
import { Charts } from "./charts.tsx";
import { SchedulesPaused } from "../work/schedule_text.tsx";
import { SystemHead } from "./system_head.tsx";
import { USAGE_COLUMNS, UsageTable } from "./usage_table.tsx";

type Overview = Schemas["Overview"];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function Page() {
  const read = useGet("/api/system/overview", {}, /^(execution|task|worker|engine|system)\./);
  return (
    <>
      <SystemHead current="/console/system" />
      {read.data === undefined
        ? <LoadState error={read.error} />
        : <Numbers overview={read.data} reload={read.reload} />}
    </>
  );
}

function Numbers({ overview, reload }: { overview: Overview; reload: () => void }) {
  const { version, state, started_at, limited_engines, usage_today, recent_executions } = overview;
  return (
    <div class="scrolled">
      <Facts
        values={{
          "Version": version,
          "State": state,
          "Started": <Ago at={started_at} />,
        }}
      />
      <SchedulesPaused paused={overview.schedules_paused} reload={reload} />
      {limited_engines.map(({ engine, until }) => (
        <Notice key={engine} tone="warn">
          {engine} is rate-limited by its provider until {formatTime(until)}.
        </Notice>
      ))}
      <div class="tiles">
        <CountTile title="Workers" href="/console/workers" counts={overview.workers} />
        <CountTile title="Tasks" href="/console/tasks" counts={overview.tasks} />
        <CountTile title="Runs" href="/console/executions" counts={overview.executions} />
        <TodayTile usage={usage_today} />
      </div>
      <Section title="Last 24 hours">
        <Charts sinceMs={DAY_MS} stepMs={HOUR_MS} />
      </Section>
      {usage_today.workers.length > 0 && (
        <Section title="Usage today">
          <UsageTable
            label="Usage by worker today"
            group="Worker"
            rows={usage_today.workers}
            name={(row) => <Link href={`/console/workers/${row.worker_id}`}>{row.worker_name}</Link>}
          />
        </Section>
      )}
      <Section title="Recent runs">
        <ExecutionList list={{ data: recent_executions, error: null, reload }} empty="No runs yet." />
      </Section>
    </div>
  );
}

interface TileProps {
  title: string;
  href: string;
  /** The total, and the count of each state. */
  counts: { total: number } & Record<string, number>;
}

function CountTile({ title, href, counts: { total, ...states } }: TileProps) {
  return (
    <section class="tile">
      <h2>
        <Link href={href}>{title}</Link>
      </h2>
      <p class="big number">{formatCount(total)}</p>
      <ul>
        {Object.entries(states).filter(([, count]) => count > 0).map(([state, count]) => (
          <li key={state}>
            <Status value={state} /> <span class="number">{formatCount(count)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function TodayTile({ usage }: { usage: Overview["usage_today"] }) {
  const rows = USAGE_COLUMNS.slice(1).map(([title, read, format]) => ({ title, value: read(usage), format }));
  return (
    <section class="tile">
      <h2>Runs today</h2>
      <p class="big number">{formatCount(usage.executions)}</p>
      <ul>
        {rows.map(({ title, value, format }) =>
          value !== null && (title !== "Failed" || value > 0) && (
            <li key={title}>
              <span>{title.toLowerCase()}</span> <span class="number">{format(value)}</span>
            </li>
          )
        )}
      </ul>
    </section>
  );
}
