import { z } from "zod";
import { verifiedSchema, verifySchema } from "../work/command.ts";
import { usageSchema } from "../work/execution.ts";
import { normalizeName } from "../call/name_key.ts";
import { id, nameText, refFilter, text, time } from "../call/field.ts";
import { remoteIsolationSchema } from "./isolation.ts";
import { mcpServersSchema } from "./mcp_server.ts";
import { isInterruption } from "../work/interruption.ts";
import { buildPageQuery } from "../call/page.ts";
import { scope } from "../call/scope.ts";
import { FAILURES, GATEWAY_KINDS, RUNNER_STATES } from "../call/vocabulary.ts";

export const RUNNERS_MAX = 1_000;
export const LABELS_MAX = 20;
export const RUNS_PER_RUNNER_MAX = 1_000;
const ENGINES_MAX = 100;
export const BOX_FAULT_MAX_BYTES = 1_000;
/** Limits of one request: the number of reports, and the bytes of a log. */
const EVENTS_PER_REQUEST_MAX = 100;
export const LOG_CHUNK_MAX_BYTES = 512 * 1024;
/** Limits of the commits of one run, and of one part of them. */
export const REPO_MAX_BYTES = 256 * 1024 * 1024;
export const REPO_CHUNK_MAX_BYTES = 4 * 1024 * 1024;
/** Limit of a run's outcome. A result of 256 KiB fits in the longest JSON escape. */
export const RUN_END_MAX_BYTES = 4 * 1024 * 1024;

/** Version of the protocol between runner and service. A runner with an older one gets no runs (contract 18). */
export const RUNNER_PROTOCOL = 1;

/** Times of leases. A runner that sends nothing for `lease_ms` loses its runs (contract 18). */
export interface LeaseTimes {
  lease_ms: number;
  beat_ms: number;
  /** A runner ends a run this long, plus its `stop_grace`, before the lease ends. */
  margin_ms: number;
}
export const LEASE_TIMES: LeaseTimes = { lease_ms: 120_000, beat_ms: 10_000, margin_ms: 20_000 };
/** Longest wait of a claim. */
export const CLAIM_WAIT_MAX_MS = 25_000;
/** A runner without a request for this long is `silent` and gets no runs. */
export const RUNNER_SILENT_MS = 35_000;

/** The home of a worker without one: each of its runs gets a new directory on any runner with its labels. */
export const NO_HOME = "none";

export const label = z.string().regex(/^[a-z0-9][a-z0-9._-]{0,49}$/, {
  error: "must be 1-50 of a-z 0-9 . _ - and start with a letter or a digit",
});

/** Removes duplicates. */
export const labels = z.array(label).max(LABELS_MAX).transform((all) => [...new Set(all)]);

export const runnerSchema = z.strictObject({
  id,
  name: z.string(),
  labels: z.array(z.string()),
  allow_admin: z.boolean().meta({ description: "whether it may run workers that hold *:*" }),
  secrets: z.boolean().meta({ description: "whether its runs get the stored secrets that workers name" }),
  state: z.enum(RUNNER_STATES),
  draining: z.boolean().meta({ description: "gets no new runs, online or not" }),
  version: z.string(),
  engines: z.array(z.string()),
  box: z.boolean().meta({ description: "whether it can run workers in a box" }),
  max_runs: z.int(),
  running: z.int().meta({ description: "current runs" }),
  last_seen_at: time.nullable(),
  created_at: time,
}).meta({ id: "Runner" });
export type RunnerView = z.output<typeof runnerSchema>;

export const runnerCreateSchema = z.strictObject({
  name: nameText().refine((name) => normalizeName(name) !== NO_HOME, {
    error: "cannot be none, which means no runner as the home of a worker",
  }),
  labels: labels.default([]),
  allow_admin: z.boolean().default(false),
  secrets: z.boolean().default(false),
}).meta({ id: "RunnerCreate", examples: [{ name: "mac1", labels: ["macos", "gpu"] }] });
export type RunnerCreate = z.output<typeof runnerCreateSchema>;

/** Includes the token, which no other response shows. */
export const runnerCreatedSchema = runnerSchema.extend({ token: z.string() }).meta({ id: "RunnerCreated" });
export type CreatedRunner = z.output<typeof runnerCreatedSchema>;

export const runnerDrainSchema = z.strictObject({
  draining: z.boolean().default(true).meta({ description: "false: accept runs again" }),
}).meta({ id: "RunnerDrain" });

export const runnerListQuery = { ref: refFilter.optional(), ...buildPageQuery() };
export type RunnerFilter = z.output<z.ZodObject<typeof runnerListQuery>>;

export const runnerClaimSchema = z.strictObject({
  request_id: id.meta({ description: "repeated, it answers the same run" }),
  process: id.meta({ description: "id of the runner process" }),
  place: id.meta({ description: "id of its work_root" }),
  epoch: z.int().min(0).meta({ description: "from the last response; 0 after a start" }),
  protocol: z.int().min(1).max(1_000),
  version: text(100),
  work_root: text(4_000),
  max_runs: z.int().min(1).max(RUNS_PER_RUNNER_MAX),
  engines: z.array(z.strictObject({
    name: text(64),
    agent: z.boolean(),
    gateways: z.array(z.enum(GATEWAY_KINDS)).default([]).meta({
      description: "kinds of gateways through which it can reach its model",
    }),
  })).max(ENGINES_MAX),
  box: z.boolean().default(false).meta({ description: "whether it can set up a box" }),
  box_fault: text(BOX_FAULT_MAX_BYTES).default("").meta({
    description: "why it cannot set up a box, with the way out",
  }),
  repo: z.boolean().default(false).meta({ description: "whether it can run workers with a repository" }),
  // No upper limit: a newer runner may wait longer.
  wait_ms: z.int().min(0).default(CLAIM_WAIT_MAX_MS).meta({
    description: `longest wait; the service responds after at most ${CLAIM_WAIT_MAX_MS} ms`,
  }),
}).meta({ id: "RunnerClaim" });
export type RunnerClaim = z.output<typeof runnerClaimSchema>;

/** Everything that a runner needs for one run. */
const wireOrderSchema = z.strictObject({
  execution: z.strictObject({
    execution_id: id,
    task_id: id,
    worker_id: id,
    session_key: z.string(),
    message_id: z.string(),
    attempt: z.int(),
    run_id: z.string(),
    engine: z.string(),
    instruction: z.string(),
  }),
  work_dir: z.string(),
  repo: z.strictObject({
    branch: z.string(),
    author: z.strictObject({ name: z.string(), email: z.string() }),
  }).nullable().meta({
    description: "the branch of the worker's repository, which the runner downloads before it starts the run",
  }),
  verify: verifySchema.nullable(),
  env: z.record(z.string(), z.string()).meta({ description: "variables of the worker without secrets" }),
  secrets: z.record(z.string(), z.string()).meta({
    description: "variables of the worker with values of secrets; the runner writes them to no disk",
  }),
  mcp: z.strictObject({
    servers: mcpServersSchema,
    secrets: z.array(z.string()).meta({ description: "values of secrets in them, to mask" }),
  }).meta({ description: "MCP servers of the worker; the runner writes their values to no disk" }),
  setup_error: z.string().meta({ description: '"", or why the run has to fail with setup' }),
  gateway: z.strictObject({ name: z.string(), kind: z.enum(GATEWAY_KINDS) }).nullable().meta({
    description: "the service's gateway through which the engine reaches its model",
  }),
  isolation: remoteIsolationSchema,
  time_zone: z.string(),
  max_log_bytes: z.int(),
  grant: z.strictObject({ subject: z.string(), scopes: z.array(scope) }),
  token: z.string().meta({ description: "token of the run, valid until the run ends" }),
  files: z.array(z.string()).meta({
    description:
      "files of the message; the runner stores them in <work_root>/files/<execution id>/ before it starts the run",
  }),
  briefing: z.strictObject({
    context: z.string(),
    prompt: z.string(),
    retelling: z.string(),
    session: z.strictObject({ id: z.string(), usage: usageSchema }).nullable(),
    extraArgs: z.string(),
  }),
}).meta({ id: "RunOrder" });

export type WireOrder = z.output<typeof wireOrderSchema>;

export const runnerClaimedSchema = z.strictObject({
  epoch: z.int(),
  version: z.string().meta({ description: "version of the service" }),
  lease_ms: z.int(),
  beat_ms: z.int(),
  margin_ms: z.int(),
  run: wireOrderSchema.nullable(),
}).meta({ id: "RunnerClaimed" });
export type RunnerClaimAnswer = z.output<typeof runnerClaimedSchema>;

export const runnerBeatSchema = z.strictObject({
  process: id,
  epoch: z.int().min(1),
  running: z.array(id).max(RUNS_PER_RUNNER_MAX),
}).meta({ id: "RunnerBeat" });
export type RunnerBeat = z.output<typeof runnerBeatSchema>;

/** A run that the list omits no longer belongs to the runner. */
export const runnerHeardSchema = z.strictObject({
  runs: z.array(z.strictObject({
    id,
    waited_ms: z.number().meta({ description: "total wait for a person, in ms" }),
    stop: z.string().meta({
      description: '"", or why the runner must end it: cancelled, or budget: <words>',
    }),
  })),
}).meta({ id: "RunnerHeard" });
export type RunnerBeatAnswer = z.output<typeof runnerHeardSchema>;

const WORDS_MAX_BYTES = 2_000;
const report = { no: z.int().min(1).max(1_000_000_000) };

const runReportSchema = z.discriminatedUnion("kind", [
  z.strictObject({ ...report, kind: z.literal("started") }),
  z.strictObject({ ...report, kind: z.literal("session"), id: text(1_000), usage: usageSchema }),
  z.strictObject({ ...report, kind: z.literal("usage"), usage: usageSchema }),
  z.strictObject({ ...report, kind: z.literal("step"), words: text(WORDS_MAX_BYTES) }),
]);

export type RunReport = z.output<typeof runReportSchema>;

/** The service ignores a report whose number it has stored already. */
export const runEventsSchema = z.strictObject({
  epoch: z.int().min(1),
  events: z.array(runReportSchema).max(EVENTS_PER_REQUEST_MAX),
}).meta({ id: "RunEvents" });
export type RunEvents = z.output<typeof runEventsSchema>;

export const runLogQuery = {
  epoch: z.string().regex(/^\d{1,9}$/).transform(Number).meta({ type: "integer" }),
  offset: z.string().regex(/^\d{1,15}$/).transform(Number).meta({ type: "integer" }),
  kind: z.enum(["log", "events"]),
};
export type RunLogPart = z.output<z.ZodObject<typeof runLogQuery>>;

/** The size of the stored log in bytes. */
export const runLoggedSchema = z.strictObject({ size: z.int() }).meta({ id: "RunLogged" });
export type RunLogSize = z.output<typeof runLoggedSchema>;

const byteCount = z.string().regex(/^\d{1,15}$/).transform(Number).meta({ type: "integer" });

export const runRepoQuery = {
  epoch: runLogQuery.epoch,
  offset: byteCount,
  size: byteCount.meta({ type: "integer", description: "size of the whole bundle" }),
};
export type RunRepoPart = z.output<z.ZodObject<typeof runRepoQuery>>;

const RESULT_TEXT_MAX_BYTES = 512 * 1024;

export const runEndSchema = z.strictObject({
  epoch: z.int().min(1),
  ran_ms: z.number().min(0).nullable().meta({
    description: "ms since its engine started; null: never started",
  }),
  interruption: text(WORDS_MAX_BYTES)
    .refine(isInterruption, { error: "must be cancelled, shutdown, late, lost or budget: <words>" })
    .nullable().meta({
      description:
        "why its runner ended it: cancelled, shutdown, late, lost, or budget: <words>; null: not interrupted",
    }),
  outcome: z.strictObject({
    status: z.enum(["completed", "failed"]),
    text: text(RESULT_TEXT_MAX_BYTES),
    failure: z.enum(["", ...FAILURES]),
    error: text(RESULT_TEXT_MAX_BYTES),
    exitCode: z.int().nullable(),
    usage: usageSchema,
    sessionId: text(1_000),
    sessionUsage: usageSchema,
    reset: z.union([
      z.strictObject({ at: z.number() }),
      z.strictObject({ inMs: z.number() }),
      z.strictObject({
        cron: text(200),
        zone: text(100).optional(),
        inDays: z.number().optional(),
        year: z.number().optional(),
        seconds: z.number().optional(),
      }),
    ]).nullable(),
    verify: verifiedSchema.optional(),
  }),
}).meta({ id: "RunEnd" });
export type RunEnd = z.output<typeof runEndSchema>;

export const runStoredSchema = z.strictObject({ status: z.literal("stored") }).meta({ id: "RunStored" });
export type RunReceipt = z.output<typeof runStoredSchema>;
