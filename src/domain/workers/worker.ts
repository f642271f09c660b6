import { z } from "zod";
import { verifySchema } from "../work/command.ts";
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
  withoutDefaults,
} from "../call/field.ts";
import { pageQuery, WORKER_PAGE_SIZE_MAX } from "../call/page.ts";
import { labels } from "./runner.ts";
import { scope } from "../call/scope.ts";
import { SHOWN_WORKER_STATUSES } from "../call/vocabulary.ts";

const PATH_MAX_BYTES = 4_000;
const ENGINE_ARGS_MAX_BYTES = 8_000;

const departmentRef = z.strictObject({ id, name: z.string() });
const departmentKey = line(NAME_MAX_BYTES).meta({ description: "id or name of a department" });
const engineName = text(64);

/**
 * The fields of a worker that a caller sets, with their defaults. A field that is added here, and as a column to the schema,
 * is stored, shown, changed and part of fleet files. Only operators may set it, unless it is one of RUN_FIELDS.
 */
const fields = {
  description: text(DESCRIPTION_MAX_BYTES).default(""),
  memory: text(CONTENT_MAX_BYTES).meta({ description: "instruction text for the worker" }).default(""),
  constraints: text(CONTENT_MAX_BYTES).default(""),
  engine: engineName.meta({ description: 'engine name; "" means the server default' }).default(""),
  engine_args: z.record(engineName, text(ENGINE_ARGS_MAX_BYTES)).default({}),
  departments: z.array(departmentKey).max(100).default([]),
  scopes: z.array(scope).max(100).default([]),
  verify: verifySchema.nullable().meta({ description: "checks the work of tasks that name no check" })
    .default(null),
  work_dir: text(PATH_MAX_BYTES).meta({ description: "absolute path; default: <data_dir>/workers/<id>" })
    .default(""),
  runs_on: labels.default([]),
  paused: z.boolean().default(false),
};

/** The fields that a run may set with its token (contract 2.9). */
export const RUN_FIELDS = ["name", "description", "memory", "verify", "paused"];

/** Body of POST /api/workers (interface 4.1, contract 3, Worker). */
export const workerCreateSchema = z.strictObject({ name: nameText(), ...fields })
  .meta({ id: "WorkerCreate", examples: [{ name: "Ada" }] });

export type WorkerCreate = z.output<typeof workerCreateSchema>;

/** A worker of which only the name was given. */
export const WORKER_DEFAULTS: WorkerCreate = workerCreateSchema.parse({ name: "x" });

const { paused, ...attributes } = withoutDefaults(fields);

/** A worker as the API shows it (interface 2, Worker; contract 3, Worker). */
export const workerSchema = z.strictObject({
  id,
  name: z.string().meta({ examples: ["Ada"] }),
  ...attributes,
  departments: z.array(departmentRef),
  runs_on: z.array(z.string()).meta({
    description: "labels of the runners that run it; empty: the service's own machine",
  }),
  home: z.string().meta({
    description: "the runner that has its directory; empty until its first run there",
  }),
  status: z.enum(SHOWN_WORKER_STATUSES),
  paused,
  created_at: time,
  updated_at: time,
  truncated,
}).meta({ id: "Worker" });

export type Worker = z.output<typeof workerSchema>;

/** Body of PUT /api/workers/:id: an absent field stays unchanged, and what PUT cannot change is ignored (contract 1.2). */
export const workerUpdateSchema = z.strictObject({
  name: nameText(),
  ...attributes,
  // A client may send back what GET answered, departments in that form included (contract 1.2).
  departments: z.array(z.union([departmentKey, departmentRef.transform((ref) => ref.id)])).max(100),
  work_dir: z.string(),
  paused,
  home: z.unknown(),
  id: z.unknown(),
  status: z.unknown(),
  created_at: z.unknown(),
  updated_at: z.unknown(),
}).partial().meta({ id: "WorkerUpdate", examples: [{ description: "Writes the newsletter" }] });

export type WorkerUpdate = z.output<typeof workerUpdateSchema>;

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
