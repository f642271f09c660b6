import { z } from "zod";
import { verifySchema } from "./command.ts";
import {
  CONTENT_MAX_BYTES,
  DESCRIPTION_MAX_BYTES,
  flag,
  id,
  line,
  listOf,
  NAME_MAX_BYTES,
  nameText,
  refFilter,
  text,
  textsOf,
  time,
  truncated,
} from "./field.ts";
import { pageQuery, WORKER_PAGE_SIZE_MAX } from "./page.ts";
import { labels } from "./runner.ts";
import { scope } from "./scope.ts";
import { SHOWN_WORKER_STATUSES } from "./vocabulary.ts";

const PATH_MAX_BYTES = 4_000;
const ENGINE_ARGS_MAX_BYTES = 8_000;

const departmentRef = z.strictObject({ id, name: z.string() });

/** A worker as the API shows it (interface 2, Worker; contract 3, Worker). */
export const workerSchema = z.strictObject({
  id,
  name: z.string().meta({ examples: ["Ada"] }),
  description: z.string(),
  memory: z.string().meta({ description: "instruction text for the worker" }),
  constraints: z.string(),
  engine: z.string().meta({ description: 'engine name; "" means the server default' }),
  engine_args: z.record(z.string(), z.string()),
  departments: z.array(departmentRef),
  scopes: z.array(z.string()),
  verify: verifySchema.nullable().meta({ description: "checks the work of tasks that name no check" }),
  work_dir: z.string().meta({ description: "absolute path" }),
  runs_on: z.array(z.string()).meta({
    description: "labels of the runners that run it; empty: the service's own machine",
  }),
  home: z.string().meta({
    description: "the runner that has its directory; empty until its first run there",
  }),
  status: z.enum(SHOWN_WORKER_STATUSES),
  paused: z.boolean(),
  created_at: time,
  updated_at: time,
  truncated,
}).meta({ id: "Worker" });

export type Worker = z.output<typeof workerSchema>;

/** Answer of GET /api/workers/:id/status: what it does, and whether it can be started (contract 5.1). */
export const workerStatusSchema = z.strictObject({
  id,
  name: z.string(),
  status: z.enum(SHOWN_WORKER_STATUSES),
  engine: z.string(),
  version: z.string().meta({ description: 'of the engine\'s program; "" where it has none' }),
  usable: z.boolean().meta({ description: "whether a run could be started now" }),
  detail: z.string().meta({ description: "the program found, or what is missing" }),
  limited_until: time.nullable().meta({
    description: "until when its engine's provider lets nothing through",
  }),
  work_dir: z.string(),
  pending: z.int(),
  running: z.int(),
  scheduled: z.int(),
  execution_ids: z.array(id).meta({ description: "runs in progress" }),
}).meta({ id: "WorkerStatus" });

export type WorkerStatus = z.output<typeof workerStatusSchema>;

const engineName = text(64);
const engineArgs = z.record(engineName, text(ENGINE_ARGS_MAX_BYTES));
const scopes = z.array(scope).max(100);
const departmentKey = line(NAME_MAX_BYTES).meta({ description: "id or name of a department" });
const departments = z.array(departmentKey).max(100);
// What GET answered can be sent back, so an update also takes departments in that form (contract 1.2).
const departmentsAsShown = z.array(z.union([departmentKey, departmentRef.transform((ref) => ref.id)])).max(
  100,
);

const attributes = {
  description: text(DESCRIPTION_MAX_BYTES),
  memory: text(CONTENT_MAX_BYTES),
  constraints: text(CONTENT_MAX_BYTES),
  engine: engineName,
  engine_args: engineArgs,
  scopes,
  verify: verifySchema.nullable().meta({ description: "checks the work of tasks that name no check" }),
  runs_on: labels,
  paused: z.boolean(),
};

/** Body of POST /api/workers (interface 4.1, contract 3, Worker). */
export const workerCreateSchema = z.strictObject({
  name: nameText(),
  description: attributes.description.default(""),
  memory: attributes.memory.default(""),
  constraints: attributes.constraints.default(""),
  work_dir: text(PATH_MAX_BYTES).default("").meta({ description: "default: <data_dir>/workers/<id>" }),
  engine: attributes.engine.default(""),
  engine_args: attributes.engine_args.default({}),
  departments: departments.default([]),
  scopes: attributes.scopes.default([]),
  verify: attributes.verify.default(null),
  runs_on: attributes.runs_on.default([]),
  paused: attributes.paused.default(false),
}).meta({ id: "WorkerCreate", examples: [{ name: "Ada" }] });

export type WorkerCreate = z.output<typeof workerCreateSchema>;

/** Body of PUT /api/workers/:id: an absent field stays unchanged, and what PUT cannot change is ignored (contract 1.2). */
export const workerUpdateSchema = z.strictObject({
  name: nameText(),
  departments: departmentsAsShown,
  ...attributes,
  work_dir: z.string(),
  home: z.unknown(),
  id: z.unknown(),
  status: z.unknown(),
  created_at: z.unknown(),
  updated_at: z.unknown(),
}).partial().meta({ id: "WorkerUpdate", examples: [{ description: "Writes the newsletter" }] });

export type WorkerUpdate = z.output<typeof workerUpdateSchema>;

/** Body of POST /api/workers/:id/rehome. */
export const workerRehomeSchema = z.strictObject({
  home: text(NAME_MAX_BYTES).default("").meta({
    description: "id or name of a runner; empty: the first that runs it next",
  }),
}).meta({ id: "WorkerRehome" });

export type WorkerRehome = z.output<typeof workerRehomeSchema>;

/** Query of GET /api/workers (interface 4.2, worker list). */
export const workerListQuery = {
  ref: refFilter.optional(),
  department: textsOf(line(NAME_MAX_BYTES)).optional()
    .meta({ type: "string", description: "ids or names, any of them; with their descendants" }),
  recursive: flag.default(true).meta({ type: "boolean", default: true }),
  no_recursive: flag.optional().meta({ type: "boolean", description: "the same as recursive=false" }),
  name: textsOf(line(NAME_MAX_BYTES)).optional()
    .meta({ type: "string", description: "part of the name, case-insensitive; any of them" }),
  id: listOf(z.string().min(1)).optional(),
  ...pageQuery(WORKER_PAGE_SIZE_MAX),
};

export type WorkerFilter = z.output<z.ZodObject<typeof workerListQuery>>;
