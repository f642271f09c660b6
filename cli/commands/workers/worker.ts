import { resolve } from "node:path";
import { type AnyCommand, command, type Context, type OptionSpec, toFields } from "../command.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { ServiceError } from "../../../src/domain/error.ts";
import { nameKey } from "../../../src/domain/name.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { buildCheck, CHECK } from "../work/schedule_settings.ts";
import { confirm } from "../../terminal/prompt.ts";
import { escapeControls } from "../../terminal/visible.ts";

const COLUMNS = [
  idField(),
  field("name"),
  statusField(),
  field("engine"),
  field("departments"),
  timeField("created_at"),
];

const ATTRIBUTES = {
  description: { flags: "--description <text>", about: "what it is for", type: "text", allowEmpty: true },
  constraints: {
    flags: "--constraints <text>",
    about: "what it must not do",
    type: "text",
    allowEmpty: true,
  },
  memory: {
    flags: "--memory <text>",
    about: "instructions that it always gets",
    type: "text",
    allowEmpty: true,
  },
  scopes: {
    flags: "--scopes <scopes>",
    completion: "scope",
    about: "what its token may do, comma-separated, such as read:workers",
    type: "words",
    allowEmpty: true,
  },
  runsOn: {
    flags: "--runs-on <labels>",
    about: "labels of the runners that run it, comma-separated; empty for the service's own machine",
    type: "words",
    allowEmpty: true,
  },
  engineArgs: {
    flags: "--engine-args <engine=args>",
    about: "its own arguments for an engine",
    type: "list",
  },
  ...CHECK,
} as const satisfies Record<string, OptionSpec>;

export const workerCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List workers, newest first",
    endpoint: "GET /api/workers",
    columns: COLUMNS,
    options: {
      department: {
        flags: "--department <ids|names>",
        completion: "department_name",
        about: "only workers of one of these departments",
        type: "text",
        multiple: true,
      },
      recursive: { flags: "--no-recursive", about: "not those of child departments", type: "flag" },
      name: { flags: "--name <text>", about: "part of the name, case-insensitive", type: "text" },
      id: {
        flags: "--id <id>",
        completion: "worker",
        ref: "worker",
        about: "exactly this worker",
        type: "text",
      },
      ...pageOptions(200),
    },
    examples: [
      "worker list",
      "worker list --department research --no-recursive",
      "worker list -q | xargs -n1 svc ctl worker get",
    ],
  }),
  command({
    name: "get",
    about: "Show a worker",
    args: ["id"],
    refs: { id: "worker" },
    options: {},
    examples: ["worker get 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/workers/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "status",
    about: "Show what a worker is doing and whether it can be started",
    args: ["id"],
    refs: { id: "worker" },
    options: {},
    examples: ["worker status 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/workers/:id/status", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Create a worker",
    options: {
      name: {
        flags: "-n, --name <name>",
        about: "its name; people mention it as @name",
        type: "text",
        required: true,
      },
      ...ATTRIBUTES,
      workDir: { flags: "--work-dir <path>", about: "where it works; made when missing", type: "text" },
      engine: {
        flags: "--engine <name>",
        completion: "engine",
        about: "which engine runs it; empty for the server's default",
        type: "text",
        allowEmpty: true,
      },
      departments: {
        flags: "--department <ids|names>",
        completion: "department_name",
        about: "departments, comma-separated",
        type: "words",
        allowEmpty: true,
      },
      yes: { flags: "--yes", about: "do not ask when another worker has the name", type: "flag" },
    },
    examples: [
      "worker create -n Ada --description 'Writes the newsletter'",
      "worker create -n Ada --engine claude --work-dir .",
    ],
    async run(context) {
      const { client, out, options, io, note } = context;
      const { workDir, engineArgs, yes, verify, verifyTimeout, verifyAttempts, ...fields } = options;
      await checkNamesake(context as unknown as Context, fields.name, yes ?? false);
      const body = {
        ...toFields(fields),
        // The server has another current directory than the caller.
        ...(workDir === undefined ? {} : { work_dir: resolve(io.cwd, workDir) }),
        ...parseEngineArgs(engineArgs),
        ...buildCheck({ verify, verifyTimeout, verifyAttempts }),
      };
      const { json, value, headers } = await client.call("POST /api/workers", { body });
      out.object(json, value);
      noteWarning(headers, note);
    },
  }),
  command({
    name: "update",
    about: "Change a worker; what is not named stays as it is",
    args: ["id"],
    refs: { id: "worker" },
    options: {
      name: { flags: "--name <name>", about: "another name", type: "text" },
      ...ATTRIBUTES,
      engine: {
        flags: "--engine <name>",
        completion: "engine",
        about: "another engine; empty leaves it",
        type: "text",
        allowEmpty: true,
      },
      departments: {
        flags: "--department <ids|names>",
        completion: "department_name",
        about: "replaces all its departments; empty takes it out of all",
        type: "words",
        allowEmpty: true,
      },
    },
    examples: [
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --description 'Checks invoices'",
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --engine-args claude=",
    ],
    async run({ client, out, args: [id = ""], options, note }) {
      const { engine, engineArgs, verify, verifyTimeout, verifyAttempts, ...fields } = options;
      const body = {
        ...toFields(fields),
        // Empty keeps the engine (interface 4.2, worker update).
        ...(engine ? { engine } : {}),
        ...parseEngineArgs(engineArgs),
        ...buildCheck({ verify, verifyTimeout, verifyAttempts }),
      };
      const { json, value, headers } = await client.call("PUT /api/workers/:id", { params: { id }, body });
      out.object(json, value);
      noteWarning(headers, note);
    },
  }),
  command({
    name: "pause",
    about: "Let a worker begin nothing more; its tasks wait",
    args: ["id"],
    refs: { id: "worker" },
    options: {},
    examples: ["worker pause 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    run: (context) => setPaused(context, true),
  }),
  command({
    name: "resume",
    about: "Let a paused worker go on",
    args: ["id"],
    refs: { id: "worker" },
    options: {},
    examples: ["worker resume 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    run: (context) => setPaused(context, false),
  }),
  command({
    name: "rehome",
    about: "Say on which runner a worker's directory is; nothing is copied",
    args: ["id"],
    refs: { id: "worker" },
    options: {
      to: { flags: "--to <runner>", about: "left out: the first that runs it next", type: "text" },
    },
    examples: ["worker rehome 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""], options: { to } }) {
      const body = to === undefined ? {} : { home: to };
      const { json, value } = await client.call("POST /api/workers/:id/rehome", { params: { id }, body });
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Delete a worker: its tasks are cancelled and its runs ended",
    args: ["id"],
    refs: { id: "worker" },
    options: {
      deleteWorkDir: {
        flags: "--delete-work-dir",
        about: "also delete its work directory from disk",
        type: "flag",
      },
      yes: { flags: "--yes", about: "do not ask before a directory is deleted", type: "flag" },
    },
    examples: ["worker delete 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""], options, io }) {
      const { yes, ...fields } = options;
      if (fields.deleteWorkDir && !yes && io.inIsTerminal && io.errIsTerminal) {
        const { name, work_dir } = (await client.call("GET /api/workers/:id", { params: { id } })).value;
        const question = `Delete ${escapeControls(name)} and ${
          escapeControls(work_dir)
        } with everything in it?`;
        if (!await confirm(io, question)) throw new Exit(EXIT.declined, "nothing was deleted");
      }
      const query = toFields(fields);
      const { json, value } = await client.call("DELETE /api/workers/:id", { params: { id }, query });
      out.object(json, value, id);
    },
  }),
];

/** A second worker of a name is mostly a mistake, and a mention reaches neither: asks on a terminal, warns in a pipe (contract 8.11). */
async function checkNamesake({ client, io, note }: Context, name: string, yes: boolean): Promise<void> {
  const { value } = await client.call("GET /api/workers", { query: { ref: name, page_size: 5 } })
    // Whoever may make workers need not be allowed to see them.
    .catch((error) => {
      if (error instanceof ServiceError && ["forbidden", "invalid_request"].includes(error.code)) {
        return { value: [] };
      }
      throw error;
    });
  const namesake = value.find((worker) => nameKey(worker.name) === nameKey(name));
  if (namesake === undefined) return;
  const words = `another worker is called ${escapeControls(namesake.name)} (${namesake.id}), so @${
    escapeControls(name)
  } will reach neither`;
  if (yes || !(io.inIsTerminal && io.errIsTerminal)) return note(`svc: warning: ${words}`);
  if (!await confirm(io, `${words.charAt(0).toUpperCase()}${words.slice(1)}. Make it?`)) {
    throw new Exit(EXIT.declined, "nothing was made");
  }
}

/** Passes on what the server did although it looks like a mistake (contract 2). */
function noteWarning(headers: Headers, note: (text: string) => void): void {
  const words = /^299 \S+ "(.*)"$/.exec(headers.get("warning") ?? "")?.[1];
  if (words !== undefined) note(`svc: warning: ${words}`);
}

async function setPaused({ client, out, args: [id = ""] }: Context, paused: boolean): Promise<void> {
  const { json, value } = await client.call("PUT /api/workers/:id", { params: { id }, body: { paused } });
  out.object(json, value);
}

/** `--engine-args claude=--fast` as the field of a request. Throws a usage error for any other form. */
function parseEngineArgs(given: string[] | undefined): { engine_args?: Record<string, string> } {
  if (given === undefined) return {};
  const pairs = given.map((one) => {
    const at = one.indexOf("=");
    if (at < 1) throw usageError(`--engine-args: ${JSON.stringify(one)} has to look like <engine>=<args>`);
    return [one.slice(0, at), one.slice(at + 1)];
  });
  return { engine_args: Object.fromEntries(pairs) };
}
