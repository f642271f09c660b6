import { resolve } from "node:path";
import type { Api } from "../../../src/http/app.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { normalizeName } from "../../../src/domain/call/name_key.ts";
import { Problem } from "../../client/transport.ts";
import { type Row, statusField, timeField, toColumns } from "../../terminal/column.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { confirm } from "../../terminal/prompt.ts";
import { escapeControls } from "../../terminal/visible.ts";
import {
  type AnyCommand,
  type BaseContext,
  command,
  type Context,
  option,
  toFields,
  type Values,
} from "../command.ts";
import { buildCheck, CHECK } from "../work/schedule_settings.ts";
import { confirmLoss, pageOptions, requestCommand, resource, YES } from "../resource.ts";

const worker = resource("worker", {
  arg: "id",
  ref: "worker",
  example: "01a1fd23-4a4c-746f-99ac-8860e2641168",
});

// The fields that create and update share. A new field of a worker is one entry here.
const FIELDS = {
  description: option.text("--description <text>", "purpose of the worker", { allowEmpty: true }),
  constraints: option.text("--constraints <text>", "rules that the worker must follow", { allowEmpty: true }),
  memory: option.text("--memory <text>", "instructions included in every run", { allowEmpty: true }),
  scopes: option.words(
    "--scopes <scopes>",
    "comma-separated scopes of the worker's runs, e.g. read:workers",
    {
      completion: "scope",
      allowEmpty: true,
    },
  ),
  runsOn: option.words(
    "--runs-on <labels>",
    "comma-separated runner labels; empty for the service's machine",
    {
      allowEmpty: true,
    },
  ),
  home: option.text(
    "--home <none>",
    "none: each run gets a new directory on any runner; empty: the runner of its first run",
    { allowEmpty: true },
  ),
  resources: option.words(
    "--resources <list>",
    "requested from the scheduler of a launcher, e.g. cpus=2,memory=8G,gpus=1,time=2h; empty for none",
    { allowEmpty: true },
  ),
  gateways: option.words(
    "--gateways <names>",
    "comma-separated gateways that its runs may use; empty for none",
    {
      allowEmpty: true,
    },
  ),
  isolation: option.text(
    "--isolation <level>",
    'namespace, box, or JSON such as {"box":{"network":"host"}}; empty for the default',
    { allowEmpty: true },
  ),
  repo: option.text(
    "--repo <repo>",
    'git repository: address, absolute path, or JSON such as {"url":"...","push":"ask"}',
  ),
  fallback: option.text(
    "--fallback <on|off>",
    "whether the engines of engines.<name>.fallback may replace its engine",
    { choices: ["on", "off"] },
  ),
  engineArgs: option.list("--engine-args <engine=args>", "extra arguments for an engine; empty for none"),
  env: option.list(
    "--env <name=value>",
    "variable of its runs, or name=secret:<secret>; repeat for several, name- removes one",
  ),
  ...CHECK,
};
const ENGINE = option.text("--engine <name>", "engine; empty for the server's default", {
  completion: "engine",
  allowEmpty: true,
});
const DEPARTMENT = { completion: "department" } as const;

export const group: AnyCommand[] = [
  worker.list("List workers, newest first", "GET /api/workers", {
    columns: toColumns("id name status engine departments created_at"),
    options: {
      department: option.text("--department <ids|names>", "filter by department", {
        ...DEPARTMENT,
        multiple: true,
      }),
      recursive: option.flag("--no-recursive", "exclude workers of child departments"),
      name: option.text("--name <text>", "filter by part of the name, ignoring case"),
      id: option.text("--id <id>", "show only this worker", { completion: "worker", ref: "worker" }),
      ...pageOptions(200),
    },
    examples: [
      "worker list",
      "worker list --department research --no-recursive",
      "worker list -q | xargs -n1 svc ctl worker get",
    ],
  }),
  worker.get("GET /api/workers/:id"),
  requestCommand({
    name: "activity",
    about: "Show the last run, the waiting tasks and the usage of every worker",
    endpoint: "GET /api/usage/workers",
    columns: toColumns(
      "worker_id worker_name pending blocked executions failed cost_usd",
      statusField("last_status"),
      timeField("last_run_at"),
    ),
    rows: ({ workers }) => workers.map(sumActivity),
    id: (row) => String(row.worker_id),
    options: { days: option.int("--days <n>", "calendar days to sum, today included", { default: 7 }) },
    examples: ["worker activity", "worker activity --days 30"],
  }),
  worker.verb("status", "Show current work and whether a run can start", "GET /api/workers/:id/status"),
  requestCommand({
    name: "trees",
    about: "List the branches and worktrees of a worker, newest first",
    endpoint: "GET /api/workers/:id/trees",
    args: ["id"],
    refs: { id: "worker" },
    columns: toColumns("id branch head_commit push session_key task_id execution_id updated_at"),
    options: pageOptions(100),
    examples: ["worker trees 01a1fd23-4a4c-746f-99ac-8860e2641168"],
  }),
  worker.create("Create a worker", "POST /api/workers", {
    options: {
      name: option.text("-n, --name <name>", "name, for mentions as @name", { required: true }),
      ...FIELDS,
      workDir: option.text("--work-dir <path>", "work directory, created if missing"),
      engine: ENGINE,
      departments: option.words("--department <ids|names>", "comma-separated departments", {
        ...DEPARTMENT,
        allowEmpty: true,
      }),
      yes: option.flag("--yes", "skip the confirmation if the name is in use"),
    },
    examples: [
      "worker create -n Ada --description 'Writes the newsletter'",
      "worker create -n Ada --engine claude --work-dir .",
    ],
    async input({ workDir, yes, ...fields }, context) {
      await checkNamesake(context, fields.name, yes ?? false);
      const { env, ...rest } = buildFields(fields);
      return {
        ...rest,
        ...(env === undefined ? {} : { env: dropRemoved(env) }),
        // The server has another current directory.
        ...(workDir === undefined ? {} : { work_dir: resolve(context.io.cwd, workDir) }),
      };
    },
    after: printWarning,
  }),
  worker.verb("update", "Change the given fields of a worker", "PUT /api/workers/:id", {
    options: {
      name: option.text("--name <name>", "new name"),
      ...FIELDS,
      engine: { ...ENGINE, about: "new engine; empty keeps the engine" },
      departments: option.words("--department <ids|names>", "new list of departments; empty removes all", {
        ...DEPARTMENT,
        allowEmpty: true,
      }),
    },
    examples: [
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --description 'Checks invoices'",
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --engine-args claude=",
    ],
    // Empty keeps the engine (interface 4.2, worker update).
    input: ({ engine, ...fields }) => ({ ...buildFields(fields), ...(engine ? { engine } : {}) }),
    after: printWarning,
  }),
  worker.verb("pause", "Pause a worker. Its tasks stay queued", "PUT /api/workers/:id", {
    input: () => ({ paused: true }),
  }),
  worker.verb("resume", "Resume a paused worker", "PUT /api/workers/:id", {
    input: () => ({ paused: false }),
  }),
  worker.verb(
    "rehome",
    "Assign a worker to the runner that has its work directory. Copies no files",
    "POST /api/workers/:id/rehome",
    {
      options: {
        to: option.text(
          "--to <runner>",
          "runner to assign, or none; by default the next one that claims a run",
        ),
      },
      input: ({ to }) => to === undefined ? {} : { home: to },
    },
  ),
  command({
    name: "delete",
    about: "Delete a worker, cancel its tasks and end its runs",
    args: ["id"],
    refs: { id: "worker" },
    options: {
      deleteWorkDir: option.flag("--delete-work-dir", "also delete the work directory"),
      yes: YES,
    },
    examples: ["worker delete 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""], options: { yes, ...fields }, io }) {
      if (!yes && io.inIsTerminal && io.errIsTerminal) {
        const { name, work_dir } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
        const loss = fields.deleteWorkDir ? ` and everything in ${work_dir}` : "";
        await confirmLoss({ io }, `Delete worker ${name}${loss}? Its tasks are canceled and its runs end.`);
      }
      const query = toFields(fields);
      const { json, value } = await client.call("DELETE /api/workers/:id", { params: { id }, query })
        .catch((error) => {
          if (!(error instanceof Problem)) throw error;
          throw error.reworded(error.message.replace("delete_work_dir", "--delete-work-dir"));
        });
      out.object(json, value, id);
    },
  }),
];

/**
 * Asks before creating a second worker with the same name, because a mention of that name then reaches neither worker. In a pipe, only
 * warns (contract 8.11).
 */
async function checkNamesake({ client, io, note }: BaseContext, name: string, yes: boolean): Promise<void> {
  const { value } = await client.call("GET /api/workers", { query: { ref: name, page_size: 5 } })
    // A caller may create workers without the right to list them.
    .catch((error) => {
      if (error instanceof ServiceError && ["forbidden", "invalid_request"].includes(error.code)) {
        return { value: [] };
      }
      throw error;
    });
  const namesake = value.find((other) => normalizeName(other.name) === normalizeName(name));
  if (namesake === undefined) return;
  const mention = escapeControls(name);
  const words = `another worker is called ${escapeControls(namesake.name)} (${namesake.id}), ` +
    `so mentions of @${mention} will reach neither`;
  if (yes || !(io.inIsTerminal && io.errIsTerminal)) return note(`svc: warning: ${words}`);
  if (!await confirm(io, `${words.charAt(0).toUpperCase()}${words.slice(1)}. Create it anyway?`)) {
    throw new Exit(EXIT.declined, "Canceled. Created nothing.");
  }
}

// The server accepts some values that are likely mistakes and warns about them (contract 2).
function printWarning(_value: unknown, { note }: Context, headers: Headers): void {
  const words = /^299 \S+ "(.*)"$/.exec(headers.get("warning") ?? "")?.[1];
  if (words !== undefined) note(`svc: warning: ${words}`);
}

function buildFields<F extends Partial<Values<typeof FIELDS>>>(fields: F) {
  const {
    engineArgs,
    env,
    fallback,
    home,
    isolation,
    repo,
    resources,
    verify,
    verifyTimeout,
    verifyAttempts,
    ...rest
  } = fields;
  return {
    ...toFields(rest),
    ...(fallback === undefined ? {} : { fallback: fallback === "on" }),
    ...(home === undefined ? {} : { home: parseHome(home) }),
    ...(resources === undefined ? {} : { resources: parseResources(resources) }),
    ...(isolation === undefined ? {} : { isolation: parseIsolation(isolation) }),
    ...(repo === undefined ? {} : { repo: parseRepo(repo) }),
    ...parseEngineArgs(engineArgs),
    ...(env === undefined ? {} : { env: parseEnv(env) }),
    ...buildCheck({ verify, verifyTimeout, verifyAttempts }),
  };
}

/** Converts `--engine-args claude=--fast` to the field of a request. Throws a usage error for any other form. */
function parseEngineArgs(given: string[] | undefined): { engine_args?: Record<string, string> } {
  if (given === undefined) return {};
  const pairs = given.map((one) => {
    const at = one.indexOf("=");
    if (at < 1) throw usageError(`--engine-args: ${JSON.stringify(one)} must have the form <engine>=<args>`);
    return [one.slice(0, at), one.slice(at + 1)];
  });
  return { engine_args: Object.fromEntries(pairs) };
}

// A new worker has no variable to remove.
function dropRemoved(env: Record<string, string | null>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}

/** Converts `--env NAME=VALUE` to the variables of a request, and `--env NAME-` to null, which removes one. */
function parseEnv(given: string[]): Record<string, string | null> {
  return Object.fromEntries(given.map((one): [string, string | null] => {
    const at = one.indexOf("=");
    if (at > 0) return [one.slice(0, at), one.slice(at + 1)];
    if (at === -1 && one.length > 1 && one.endsWith("-")) return [one.slice(0, -1), null];
    // Does not repeat the text, which may be a value.
    throw usageError(
      "--env must have the form NAME=VALUE, NAME=secret:<secret>, or NAME- to remove a variable",
    );
  }));
}

type Isolation = NonNullable<Api["POST /api/workers"]["body"]["isolation"]> | null;
// The server checks the value.
function parseIsolation(given: string): Isolation {
  if (given === "") return null;
  if (!given.startsWith("{")) return given as Isolation;
  try {
    return JSON.parse(given);
  } catch {
    throw usageError(`--isolation: ${JSON.stringify(given)} must be namespace, box or a JSON object`);
  }
}

// The server ignores other homes in an update, because a client may send back what it got.
function parseHome(given: string): "none" | "" {
  if (given === "none" || given === "") return given;
  throw usageError(`--home: ${JSON.stringify(given)} must be none or empty. Use worker rehome --to <runner>`);
}

type Resources = NonNullable<Api["POST /api/workers"]["body"]["resources"]> | null;
// The server checks the value.
function parseResources(given: readonly string[]): Resources {
  if (given.length === 0) return null;
  return Object.fromEntries(given.map((one) => {
    const [, name = "", value = ""] = /^([^=]+)=(.+)$/.exec(one) ?? [];
    if (name === "") throw usageError(`--resources: ${JSON.stringify(one)} must have the form cpus=2`);
    return [name, ["cpus", "gpus"].includes(name) && !isNaN(Number(value)) ? Number(value) : value];
  }));
}

type Repo = NonNullable<Api["POST /api/workers"]["body"]["repo"]>;
// The server checks the value.
function parseRepo(given: string): Repo {
  if (given.startsWith("/")) return { path: given };
  try {
    if (given.startsWith("{")) return JSON.parse(given);
  } catch {
    throw buildRepoError(given);
  }
  // Every address has a colon, so this is a relative path, which only this machine could resolve.
  if (!given.includes(":")) throw buildRepoError(given);
  return { url: given };
}

function buildRepoError(given: string): Exit {
  return usageError(`--repo: ${JSON.stringify(given)} must be an address, an absolute path or a JSON object`);
}

function sumActivity(
  { last_run, days, ...worker }: Api["GET /api/usage/workers"]["response"]["workers"][number],
): Row {
  const costs = days.flatMap(({ cost_usd }) => cost_usd ?? []);
  return {
    ...worker,
    executions: days.reduce((sum, day) => sum + day.executions, 0),
    failed: days.reduce((sum, day) => sum + day.failed, 0),
    cost_usd: costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost, 0),
    last_status: last_run?.status ?? "",
    last_run_at: last_run?.created_at ?? null,
  };
}
