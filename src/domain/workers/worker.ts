import { z } from "zod";
import { verifySchema } from "../work/command.ts";
import {
  CONTENT_MAX_BYTES,
  DESCRIPTION_MAX_BYTES,
  flag,
  id,
  ignoreFields,
  line,
  NAME_MAX_BYTES,
  nameText,
  parseFlagOr,
  parseList,
  parseTextList,
  refFilter,
  removeDefaults,
  text,
  textFilter,
  time,
  truncated,
} from "../call/field.ts";
import { mcpServersPatchSchema, mcpServersSchema } from "./mcp_server.ts";
import { workerEnvPatchSchema, workerEnvSchema } from "./worker_env.ts";
import { buildPageQuery, WORKER_PAGE_SIZE_MAX } from "../call/page.ts";
import { isolationSchema, PATH_MAX_BYTES } from "./isolation.ts";
import { repoSchema } from "./repo.ts";
import { resourcesSchema } from "./resources.ts";
import { labels, NO_HOME } from "./runner.ts";
import { scope } from "../call/scope.ts";
import { skillSchema, skillSourcesSchema } from "./skill.ts";
import { SHOWN_WORKER_STATUSES } from "../call/vocabulary.ts";

const ENGINE_ARGS_MAX_BYTES = 8_000;
/** Gateways of one worker. */
const GATEWAYS_MAX = 50;

const departmentRef = z.strictObject({ id, name: z.string() });
const departmentKey = line(NAME_MAX_BYTES).meta({ description: "id or name of a department" });
const engineName = text(64);

/**
 * The fields of a worker that callers set, with their defaults. A new field here, with its column in the schema, is stored,
 * returned, updatable and part of fleet files. Only operators may set it, unless RUN_FIELDS names it.
 */
const fields = {
  description: text(DESCRIPTION_MAX_BYTES).default(""),
  memory: text(CONTENT_MAX_BYTES).meta({ description: "instruction text for the worker" }).default(""),
  constraints: text(CONTENT_MAX_BYTES).default(""),
  engine: engineName.meta({ description: 'engine name; "" means the server default' }).default(""),
  engine_args: z.record(engineName, text(ENGINE_ARGS_MAX_BYTES)).default({}),
  env: workerEnvSchema.default({}),
  departments: z.array(departmentKey).max(100).default([]),
  scopes: z.array(scope).max(100).default([]),
  verify: verifySchema.nullable().meta({ description: "check for tasks without their own" })
    .default(null),
  work_dir: text(PATH_MAX_BYTES).meta({ description: "absolute path; default: <data_dir>/workers/<id>" })
    .default(""),
  repo: repoSchema.nullable().meta({ description: "the repository that its runs work on; null for none" })
    .default(null),
  runs_on: labels.default([]),
  home: z.enum(["", NO_HOME]).meta({
    description: "none: each run gets a new directory on any runner; empty: the runner of its first run",
  }).default(""),
  resources: resourcesSchema.nullable().meta({
    description: "requested from the scheduler of a launcher; null: the scheduler's defaults",
  }).default(null),
  gateways: z.array(text(63)).max(GATEWAYS_MAX).default([]).meta({
    description: "names of gateways of the configuration that its runs may use",
  }),
  isolation: isolationSchema.nullable().meta({ description: "null: isolation.default of the configuration" })
    .default(null),
  mcp: mcpServersSchema.default({}),
  skills: skillSourcesSchema.default([]),
  fallback: z.boolean().meta({
    description: "whether the engines of engines.<name>.fallback may replace its engine",
  }).default(false),
  paused: z.boolean().default(false),
};

/** The fields that a run may set with its token (contract 2.9). */
export const RUN_FIELDS = ["name", "description", "memory", "verify", "paused"];

export const workerCreateSchema = z.strictObject({ name: nameText(), ...fields })
  .meta({ id: "WorkerCreate", examples: [{ name: "Ada" }] });
export type WorkerCreate = z.output<typeof workerCreateSchema>;

export const WORKER_DEFAULTS: WorkerCreate = workerCreateSchema.parse({ name: "x" });

const { paused, ...attributes } = removeDefaults(fields);

export const workerSchema = z.strictObject({
  id,
  name: z.string().meta({ examples: ["Ada"] }),
  ...attributes,
  departments: z.array(departmentRef),
  skills: z.array(skillSchema).meta({ description: "folders of git repositories with a SKILL.md" }),
  runs_on: z.array(z.string()).meta({
    description: "required labels of its runner; empty: runs on the service's machine",
  }),
  isolation_effective: isolationSchema.meta({
    description: "isolation, or the default of the configuration",
  }),
  home: z.string().meta({
    description:
      "the runner with its work directory; empty before its first run on a runner; none: each run gets a new directory",
  }),
  status: z.enum(SHOWN_WORKER_STATUSES),
  paused,
  created_at: time,
  updated_at: time,
  truncated,
}).meta({ id: "Worker" });
export type Worker = z.output<typeof workerSchema>;

/** A field that the request omits stays unchanged. PUT ignores read-only fields (contract 1.2). */
export const workerUpdateSchema = z.strictObject({
  name: nameText(),
  ...attributes,
  // A client may send back departments in the form of a GET response (contract 1.2).
  departments: z.array(z.union([departmentKey, departmentRef.transform((ref) => ref.id)])).max(100),
  env: workerEnvPatchSchema,
  mcp: mcpServersPatchSchema,
  work_dir: z.string(),
  // A client may send back the name of a runner from a GET response, which changes nothing.
  home: z.string().meta({ description: 'none, or "" to end none; other names change nothing' }),
  paused,
  ...ignoreFields("isolation_effective", "id", "status", "created_at", "updated_at"),
}).partial().meta({ id: "WorkerUpdate", examples: [{ description: "Writes the newsletter" }] });
export type WorkerUpdate = z.output<typeof workerUpdateSchema>;

export const workerStatusSchema = z.strictObject({
  id,
  name: z.string(),
  status: z.enum(SHOWN_WORKER_STATUSES),
  engine: z.string(),
  version: z.string().meta({ description: "version of the engine's program, or empty" }),
  usable: z.boolean().meta({ description: "whether a run could start now" }),
  detail: z.string().meta({ description: "the program found, or what is missing" }),
  limited_until: time.nullable().meta({ description: "end of the rate limit of its engine's provider" }),
  work_dir: z.string(),
  pending: z.int(),
  running: z.int(),
  scheduled: z.int(),
  execution_ids: z.array(id).meta({ description: "runs in progress" }),
}).meta({ id: "WorkerStatus" });
export type WorkerStatus = z.output<typeof workerStatusSchema>;

export const workerRehomeSchema = z.strictObject({
  home: text(NAME_MAX_BYTES).default("").meta({
    description:
      "id or name of a runner; empty: the runner of its next run; none: none, each run gets a new directory",
  }),
}).meta({ id: "WorkerRehome" });
export type WorkerRehome = z.output<typeof workerRehomeSchema>;

export const workerListQuery = {
  ref: refFilter.optional(),
  department: parseTextList(line(NAME_MAX_BYTES)).optional()
    .meta({ type: "string", description: "ids or names, with their descendants; any of them matches" }),
  recursive: parseFlagOr(true),
  no_recursive: flag.optional().meta({ type: "boolean", description: "the same as recursive=false" }),
  name: parseTextList(line(NAME_MAX_BYTES)).optional()
    .meta({ type: "string", description: "part of the name, case-insensitive; any of them matches" }),
  id: parseList(z.string().min(1)).optional(),
  engine: parseList(z.string().min(1)).optional(),
  text: textFilter.optional().meta({ description: "text in the name or the description" }),
  ...buildPageQuery(WORKER_PAGE_SIZE_MAX),
};
export type WorkerFilter = z.output<z.ZodObject<typeof workerListQuery>>;
