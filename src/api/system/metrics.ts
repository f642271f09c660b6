import { statfs } from "node:fs/promises";
import { VERSION } from "../../base/version.ts";
import type { PlatformStatus } from "../../domain/chat/platform.ts";
import { FAILURES } from "../../domain/call/vocabulary.ts";
import { readCounters } from "../../store/db/counters.ts";
import { readBacklog, readDatabaseFacts } from "../../store/events/health.ts";
import { findOldestEventAt, readJournalRange } from "../../store/events/journal.ts";
import { countWorkers } from "../../store/events/overview.ts";
import { findSetting } from "../../store/db/setting.ts";
import type { Deps } from "../call/services.ts";
import { listPlatformStates } from "../chat/platform.ts";

export type Sample = [labels: Record<string, string>, value: number];

/** A metric with its samples, or with one value without labels. */
export interface Metric {
  name: string;
  type: "gauge" | "counter";
  help: string;
  value: number | Sample[];
}

type ProcessDeps = Deps<"db" | "lifecycle" | "stages" | "limits" | "platforms" | "countDroppedSpans">;
type RowDeps = Deps<"db" | "clock" | "retention">;
type DatabaseDeps = Deps<"db" | "paths" | "watch" | "owner">;

/** Reads all metrics of GET /metrics: totals without ids, and only configured names. */
export async function readMetrics(deps: ProcessDeps & RowDeps & DatabaseDeps): Promise<Metric[]> {
  return [
    ...readProcessMetrics(deps),
    ...await readRowMetrics(deps),
    ...await readDatabaseMetrics(deps),
    ...await readPlatformMetrics(deps),
  ];
}

/** Builds a metric that can rise and fall. */
export function buildGauge(name: string, help: string, value: number | Sample[]): Metric {
  return { name, type: "gauge", help, value };
}

function buildCounter(name: string, help: string, value: number | Sample[]): Metric {
  return { name, type: "counter", help, value };
}

function readProcessMetrics({ db, lifecycle, stages, limits, countDroppedSpans }: ProcessDeps): Metric[] {
  const { writes, oldestMs } = db.waiting;
  const build = { version: VERSION, deno: Deno.version.deno };
  const memory = Deno.memoryUsage();
  return [
    buildGauge("svc_build_info", "Version of the service and of its runtime.", [[build, 1]]),
    buildGauge("svc_ready", "1 while the service accepts work.", lifecycle.state === "ready" ? 1 : 0),
    buildGauge(
      "svc_writing_stopped",
      "1 after the database was damaged or lost, so nothing is stored.",
      db.broken ? 1 : 0,
    ),
    buildGauge(
      "svc_stage_well",
      "1 while a background stage is healthy.",
      stages().map(({ name, well }) => [{ stage: name }, well ? 1 : 0]),
    ),
    buildGauge("svc_runs_max", "Limit of concurrent runs.", limits.max_concurrent_runs),
    buildGauge("svc_write_queue", "Writes that wait for the database.", writes),
    buildGauge("svc_write_queue_oldest_seconds", "Waiting time of the oldest write.", oldestMs / 1000),
    buildCounter("svc_database_busy_total", "Times that another process locked the database.", db.busy),
    ...(countDroppedSpans === null ? [] : [
      buildCounter(
        "svc_telemetry_dropped_spans_total",
        "Spans that the collector of traces did not get.",
        countDroppedSpans(),
      ),
    ]),
    buildGauge("process_resident_memory_bytes", "Resident memory.", memory.rss),
    buildGauge("svc_heap_used_bytes", "Used heap, including uncollected objects.", memory.heapUsed),
    buildGauge("svc_heap_bytes", "Allocated heap.", memory.heapTotal),
    buildGauge("svc_external_memory_bytes", "Buffers outside the heap.", memory.external),
    buildGauge("process_start_time_seconds", "Start of the process, Unix time.", lifecycle.startedAt / 1000),
  ];
}

async function readRowMetrics({ db, clock, retention }: RowDeps): Promise<Metric[]> {
  const now = clock.now();
  const [counters, workers, backlog, range, oldestEvent] = await Promise.all([
    readCounters(db),
    countWorkers(db),
    readBacklog(db, now),
    readJournalRange(db),
    findOldestEventAt(db),
  ]);
  const age = (since: number | null) => since === null ? 0 : Math.max(0, now - since) / 1000;
  const byStatus = (counts: Record<string, number>): Sample[] =>
    Object.entries(counts).map(([status, count]) => [{ status }, count]);
  const { total: _all, ...byWorkerStatus } = workers;
  const ended = counters.ended ?? {};
  const overdueMs = oldestEvent === null ? 0 : now - oldestEvent - retention.journal;
  return [
    buildGauge("svc_workers", "Workers by status.", byStatus(byWorkerStatus)),
    buildGauge("svc_tasks", "Stored tasks by status.", byStatus(counters.task ?? {})),
    buildGauge(
      "svc_executions",
      "Stored executions by status; pending and running are active.",
      byStatus(counters.execution ?? {}),
    ),
    buildCounter(
      "svc_runs_ended_total",
      "Ended runs by outcome: completed, or the kind of failure.",
      ["completed", ...FAILURES].map((outcome) => [{ outcome }, ended[outcome] ?? 0]),
    ),
    buildGauge(
      "svc_tasks_waiting",
      "Due tasks that nothing blocks and that wait for a run.",
      backlog.pending,
    ),
    buildGauge(
      "svc_tasks_waiting_oldest_seconds",
      "Waiting time of the oldest task.",
      age(backlog.pendingSince),
    ),
    buildGauge("svc_messages_unrouted", "Messages that wait for the coordinator.", backlog.unrouted),
    buildGauge(
      "svc_messages_unrouted_oldest_seconds",
      "Waiting time of the oldest message.",
      age(backlog.unroutedSince),
    ),
    buildGauge("svc_schedules_overdue", "Due tasks that have not fired.", backlog.overdue),
    buildGauge(
      "svc_schedules_overdue_oldest_seconds",
      "Delay of the most overdue task.",
      age(backlog.overdueSince),
    ),
    buildGauge("svc_replies_undelivered", "Replies that wait for delivery.", backlog.undelivered),
    buildGauge("svc_questions_open", "Open questions of agents.", backlog.questions),
    buildGauge(
      "svc_questions_open_oldest_seconds",
      "Waiting time of the oldest question.",
      age(backlog.questionsSince),
    ),
    buildCounter("svc_journal_events_total", "Events recorded since the database was created.", range.last),
    buildGauge(
      "svc_journal_lag_seconds",
      "Age of the oldest event beyond retention.journal.",
      Math.max(0, overdueMs) / 1000,
    ),
  ];
}

// Labels are the configured names: few, and no secrets.
async function readPlatformMetrics(
  deps: Deps<"db" | "platforms" | "lifecycle" | "clock">,
): Promise<Metric[]> {
  const all = await listPlatformStates(deps);
  const now = deps.clock.now();
  const sample = (value: (one: PlatformStatus) => number): Sample[] =>
    all.map((one) => [{ platform: one.name, kind: one.kind }, value(one)]);
  return [
    buildGauge(
      "svc_platform_up",
      "1 while the platform is connected.",
      sample(({ state }) => state === "connected" ? 1 : 0),
    ),
    buildGauge(
      "svc_platform_replies_waiting",
      "Replies that wait for a platform.",
      sample(({ waiting }) => waiting),
    ),
    buildGauge(
      "svc_platform_replies_waiting_oldest_seconds",
      "Waiting time of the oldest reply.",
      sample(({ waiting_since: since }) => since === null ? 0 : Math.max(0, now - since) / 1000),
    ),
  ];
}

async function readDatabaseMetrics({ db, paths, watch, owner }: DatabaseDeps): Promise<Metric[]> {
  const disk = await statfs(paths.root).catch(() => null);
  const backupAt = Number(await findSetting(db, "last_backup_at") ?? 0);
  const facts = db.remote ? null : await readDatabaseFacts(db);
  return [
    ...(disk === null ? [] : [
      buildGauge("svc_disk_free_bytes", "Free disk space for the data directory.", disk.bavail * disk.bsize),
    ]),
    ...(facts === null ? [] : [
      buildGauge("svc_database_bytes", "Size of the database.", facts.bytes),
      buildGauge("svc_database_free_bytes", "Free space in the database.", facts.freeBytes),
      buildGauge("svc_database_wal_bytes", "Size of the write-ahead log.", watch?.walBytes ?? 0),
    ]),
    ...(owner === null ? [] : [
      buildGauge(
        "svc_database_server_well",
        "1 while the database server accepts writes.",
        owner.fault === null ? 1 : 0,
      ),
      buildGauge("svc_standbys", "Services that wait to take over.", owner.standbys.length),
    ]),
    buildGauge(
      "svc_last_backup_timestamp_seconds",
      "Time of the last backup, Unix time; 0 for never.",
      backupAt / 1000,
    ),
  ];
}
