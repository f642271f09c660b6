import { invalid } from "../../domain/call/error.ts";
import { listLastDays } from "../../domain/workers/month.ts";
import {
  type Activity,
  type QuarterUsage,
  SERIES_POINTS_MAX,
  SERIES_SINCE_DEFAULT_MS,
  type SeriesPoint,
  USAGE_DAYS_MAX,
  type UsageRow,
} from "../../domain/workers/usage.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import type { USAGE_GROUPS } from "../../domain/call/vocabulary.ts";
import {
  listUsageByDepartment,
  listUsageByExecution,
  listUsageByQuarter,
  listUsageByWorker,
  listUsageByWorkerAndDay,
  listWaitsByQuarter,
  listWorkerActivity,
} from "../../store/workers/usage.ts";
import { type Answer, answer, answerList } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

type Usage = Omit<UsageRow, "key" | "name">;

const QUARTER_MS = 900_000;
const DAY_MS = 86_400_000;
const NOTHING: Usage = {
  executions: 0,
  failed: 0,
  minutes: 0,
  input_tokens: null,
  output_tokens: null,
  cost_usd: null,
};

/** Returns the usage of runs since a time or on the last days of the service's time zone, grouped by `by`. Throws `invalid_request`. */
export async function listUsage(
  { db, clock, timeZone }: Deps<"db" | "clock" | "timeZone">,
  call: Call,
  { by, since: given, days }: { by: (typeof USAGE_GROUPS)[number]; since?: number | undefined; days: number },
): Promise<Answer<UsageRow[]>> {
  const since = given ?? listLastDays(timeZone, clock.now(), days)[0]?.start ?? clock.now();
  if (given !== undefined && clock.now() - given > USAGE_DAYS_MAX * DAY_MS) {
    throw invalid("since", `must be at most ${USAGE_DAYS_MAX} days ago`);
  }
  switch (by) {
    case "worker":
      return answerList(await listUsageByWorker(db, since));
    case "department":
      return answerList(await listUsageByDepartment(db, since));
    case "engine":
      return answerList(await listUsageByExecution(db, "engine", since, null));
    case "conversation":
      return answerList(
        await listUsageByExecution(db, "session_key", since, getBoundSessionKey(call.caller)),
      );
    case "day":
      return answerList(groupByDay(await listUsageByQuarter(db, since), timeZone));
  }
}

/** Returns usage and waiting times per `step` from `since` until now. Throws `invalid_request`. */
export async function listSeries(
  { db, clock }: Deps<"db" | "clock">,
  { since: given, step }: { since?: number | undefined; step: number },
): Promise<Answer<SeriesPoint[]>> {
  const now = clock.now();
  const since = given ?? now - SERIES_SINCE_DEFAULT_MS;
  if (step % QUARTER_MS !== 0) throw invalid("step", `must be a multiple of ${QUARTER_MS}`);
  const first = Math.floor(since / step) * step;
  const count = Math.floor((now - first) / step) + 1;
  if (count > SERIES_POINTS_MAX) {
    throw invalid(
      "step",
      `gives ${count} points, but at most ${SERIES_POINTS_MAX} are allowed. Use a longer step.`,
    );
  }
  const points: SeriesPoint[] = Array.from(
    { length: Math.max(0, count) },
    (_, index) => ({ at: first + index * step, ...NOTHING, waited_ms: null, waited_longest_ms: null }),
  );
  const findIndex = (at: number) => Math.floor((at - first) / step);
  const [used, waited] = await Promise.all([listUsageByQuarter(db, first), listWaitsByQuarter(db, first)]);
  for (const quarter of used) {
    const point = points[findIndex(quarter.at)];
    if (point !== undefined) addUsage(point, quarter);
  }
  for (const [index, starts] of Map.groupBy(waited, ({ at }) => findIndex(at))) {
    const point = points[index];
    if (point === undefined) continue;
    const sum = (name: "runs" | "ms") => starts.reduce((total, one) => total + one[name], 0);
    point.waited_ms = Math.round(sum("ms") / sum("runs"));
    point.waited_longest_ms = Math.max(...starts.map(({ longest_ms }) => longest_ms));
  }
  return answerList(points);
}

/** Returns the current work of every worker, and its usage on each of the last days of the service's time zone. */
export async function listActivity(
  { db, clock, timeZone }: Deps<"db" | "clock" | "timeZone">,
  { days: count }: { days: number },
): Promise<Answer<Activity>> {
  const days = listLastDays(timeZone, clock.now(), count);
  const [rows, usage] = await Promise.all([
    listWorkerActivity(db, days[0]?.start ?? clock.now()),
    listUsageByWorkerAndDay(db, days),
  ]);
  const byWorker = Map.groupBy(usage, ({ worker_id }) => worker_id);
  return answer({
    days: days.map(({ day }) => day),
    workers: rows.map(({ deleted, last_id, last_status, last_at, ...row }) => ({
      ...row,
      deleted: deleted === 1,
      last_run: last_id === null ? null : { id: last_id, status: last_status, created_at: last_at },
      days: (byWorker.get(row.worker_id) ?? []).map(({ worker_id: _, ...day }) => day),
    })),
  });
}

function groupByDay(quarters: QuarterUsage[], timeZone: string): UsageRow[] {
  const days = new Map<string, UsageRow>();
  const format = new Intl.DateTimeFormat("en-CA", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
  });
  for (const quarter of quarters) {
    const key = format.format(quarter.at);
    const day = days.get(key) ?? { key, name: "", ...NOTHING };
    addUsage(day, quarter);
    days.set(key, day);
  }
  return [...days.values()].reverse();
}

// A value stays unknown while no run reports it.
function addUsage(sum: Usage, more: Usage): void {
  sum.executions += more.executions;
  sum.failed += more.failed;
  sum.minutes = Number((sum.minutes + more.minutes).toFixed(3));
  for (const name of ["input_tokens", "output_tokens", "cost_usd"] as const) {
    const value = more[name];
    if (value !== null) sum[name] = (sum[name] ?? 0) + value;
  }
}
