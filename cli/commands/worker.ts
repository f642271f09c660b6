import { resolve } from "node:path";
import {
  type AnyCommand,
  commaList,
  command,
  type Context,
  noteMore,
  type OptionSpec,
  pageOptions,
} from "../command.ts";
import { usage } from "../exit.ts";
import { field, statusField, timeField } from "../output.ts";

const COLUMNS = [
  field("id"),
  field("name"),
  statusField(),
  field("engine"),
  field("departments"),
  timeField("created_at"),
];

const ATTRIBUTES = {
  description: { flags: "--description <text>", about: "what it is for", type: "text", mayBeEmpty: true },
  constraints: {
    flags: "--constraints <text>",
    about: "what it must not do",
    type: "text",
    mayBeEmpty: true,
  },
  memory: {
    flags: "--memory <text>",
    about: "instructions that it always gets",
    type: "text",
    mayBeEmpty: true,
  },
  scopes: {
    flags: "--scopes <scopes>",
    about: "what its token may do, comma-separated, such as read:workers",
    type: "text",
    mayBeEmpty: true,
    several: true,
  },
  engineArgs: {
    flags: "--engine-args <engine=args>",
    about: "its own arguments for an engine",
    type: "list",
  },
} as const satisfies Record<string, OptionSpec>;

export const workerCommands: AnyCommand[] = [
  command({
    name: "list",
    about: "List workers, newest first",
    options: {
      department: { flags: "--department <id|name>", about: "only workers of a department", type: "text" },
      recursive: { flags: "--no-recursive", about: "not those of child departments", type: "flag" },
      name: { flags: "--name <text>", about: "part of the name, case-insensitive", type: "text" },
      id: { flags: "--id <id>", about: "exactly this worker", type: "text" },
      ...pageOptions(200),
    },
    examples: [
      "worker list",
      "worker list --department research --no-recursive",
      "worker list -q | xargs -n1 svc ctl worker get",
    ],
    async run(context) {
      const { department, recursive, name, id, page, pageSize } = context.options;
      const query = {
        department,
        recursive: recursive === false ? false : undefined,
        name,
        id,
        page,
        page_size: pageSize,
      };
      const { json, value, headers } = await context.client.call("GET /api/workers", { query });
      await context.out.list(json, value, COLUMNS);
      noteMore(context, value.length, headers, page);
    },
  }),
  command({
    name: "get",
    about: "Show a worker",
    args: ["id"],
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
        about: "which engine runs it; empty for the server's default",
        type: "text",
        mayBeEmpty: true,
      },
      department: {
        flags: "--department <ids|names>",
        about: "departments, comma-separated",
        type: "text",
        mayBeEmpty: true,
        several: true,
      },
    },
    examples: [
      "worker create -n Ada --description 'Writes the newsletter'",
      "worker create -n Ada --engine claude --work-dir .",
    ],
    async run({ client, out, options, io, note }) {
      const { name, description, constraints, memory, workDir, engine } = options;
      const body = {
        name,
        ...(description === undefined ? {} : { description }),
        ...(constraints === undefined ? {} : { constraints }),
        ...(memory === undefined ? {} : { memory }),
        // The server has another current directory than the caller.
        ...(workDir === undefined ? {} : { work_dir: resolve(io.cwd, workDir) }),
        ...(engine === undefined ? {} : { engine }),
        ...lists(options),
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
    options: {
      name: { flags: "--name <name>", about: "another name", type: "text" },
      ...ATTRIBUTES,
      engine: {
        flags: "--engine <name>",
        about: "another engine; empty leaves it",
        type: "text",
        mayBeEmpty: true,
      },
      department: {
        flags: "--department <ids|names>",
        about: "replaces all its departments; empty takes it out of all",
        type: "text",
        mayBeEmpty: true,
        several: true,
      },
    },
    examples: [
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --description 'Checks invoices'",
      "worker update 01a1fd23-4a4c-746f-99ac-8860e2641168 --engine-args claude=",
    ],
    async run({ client, out, args: [id = ""], options, note }) {
      const { name, description, constraints, memory, engine } = options;
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(description === undefined ? {} : { description }),
        ...(constraints === undefined ? {} : { constraints }),
        ...(memory === undefined ? {} : { memory }),
        // Empty keeps the engine (interface 4.2, worker update).
        ...(engine ? { engine } : {}),
        ...lists(options),
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
    options: {},
    examples: ["worker pause 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    run: (context) => setPaused(context, true),
  }),
  command({
    name: "resume",
    about: "Let a paused worker go on",
    args: ["id"],
    options: {},
    examples: ["worker resume 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    run: (context) => setPaused(context, false),
  }),
  command({
    name: "delete",
    about: "Delete a worker: its tasks are cancelled and its runs ended",
    args: ["id"],
    options: {
      deleteWorkDir: {
        flags: "--delete-work-dir",
        about: "also delete its work directory from disk",
        type: "flag",
      },
    },
    examples: ["worker delete 01a1fd23-4a4c-746f-99ac-8860e2641168"],
    async run({ client, out, args: [id = ""], options }) {
      const query = { delete_work_dir: options.deleteWorkDir ? true : undefined };
      const { json, value } = await client.call("DELETE /api/workers/:id", { params: { id }, query });
      out.object(json, value, id);
    },
  }),
];

/** Says what the server did, but thinks a mistake (contract 2, scopes that nothing asks for). */
function noteWarning(headers: Headers, note: (text: string) => void): void {
  const words = /^299 \S+ "(.*)"$/.exec(headers.get("warning") ?? "")?.[1];
  if (words !== undefined) note(`svc: warning: ${words}`);
}

async function setPaused({ client, out, args: [id = ""] }: Context, paused: boolean): Promise<void> {
  const { json, value } = await client.call("PUT /api/workers/:id", { params: { id }, body: { paused } });
  out.object(json, value);
}

function lists(
  options: { department: string | undefined; scopes: string | undefined; engineArgs: string[] | undefined },
): { departments?: string[]; scopes?: string[]; engine_args?: Record<string, string> } {
  const departments = commaList(options.department);
  const scopes = commaList(options.scopes);
  return {
    ...(departments === undefined ? {} : { departments }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(options.engineArgs === undefined ? {} : { engine_args: engineArgs(options.engineArgs) }),
  };
}

function engineArgs(given: string[]): Record<string, string> {
  return Object.fromEntries(given.map((one) => {
    const at = one.indexOf("=");
    if (at < 1) throw usage(`--engine-args: ${JSON.stringify(one)} has to look like <engine>=<args>`);
    return [one.slice(0, at), one.slice(at + 1)];
  }));
}
