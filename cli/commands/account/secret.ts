import { ServiceError } from "../../../src/domain/call/error.ts";
import type { Client } from "../../client/client.ts";
import { timeField, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { readInputFile, readText } from "../../terminal/input_text.ts";
import type { Io } from "../../terminal/io.ts";
import { SecretPrompt } from "../../terminal/prompt.ts";
import { type AnyCommand, command, type Context, option } from "../command.ts";
import { confirmLoss, pageOptions, requestCommand, YES } from "../resource.ts";
import { resolveRef } from "../../client/resource_ref.ts";

/** The service's limit, and some bytes for a line break at the end. */
const INPUT_MAX_BYTES = 64 * 1024 + 16;

const WORKERS = option.list("--worker <id|name>", "worker that may use it; repeat for several", {
  completion: "worker_name",
});

const LAST_USED = {
  ...timeField("last_used_at"),
  show: (row: Record<string, unknown>) =>
    row.last_used_at === null ? "never" : new Date(Number(row.last_used_at)).toISOString().slice(0, 16),
};

export const group: AnyCommand[] = [
  command({
    name: "set",
    about: "Create a secret or replace its value, from stdin, a file or a prompt",
    args: ["secret"],
    options: {
      stdin: option.flag("--stdin", "read the value from stdin (the default in a pipe)"),
      file: option.text("--file <path>", "read the value from a file"),
      worker: {
        ...WORKERS,
        about: "worker that may use it, in addition to the present ones; repeat for several",
      },
    },
    examples: [
      "secret set github-token",
      "secret set github-token --worker Ada < token.txt",
      "secret set deploy-key --file id_ed25519",
    ],
    async run(context) {
      const { client, out, io, args: [name = ""], options: { stdin = false, file, worker } } = context;
      if (stdin && file !== undefined) throw usageError("--stdin cannot be used with --file");
      const value = await readValue(io, stdin, file);
      const added = await resolveWorkers(client, worker ?? []);
      const workers = added.length === 0 ? {} : { workers: [...await listWorkers(client, name), ...added] };
      const answer = await client.call("PUT /api/secrets/:name", {
        params: { name },
        body: { value, ...workers },
      });
      out.object(answer.json, answer.value, name);
    },
  }),
  requestCommand({
    name: "list",
    about: "List secrets by name, without their values",
    endpoint: "GET /api/secrets",
    options: pageOptions(100),
    columns: toColumns("name workers used_by lost updated_at", LAST_USED),
    examples: ["secret list"],
    id: (row) => String(row.name),
  }),
  requestCommand({
    name: "get",
    about: "Show a secret without its value",
    endpoint: "GET /api/secrets/:name",
    args: ["secret"],
    examples: ["secret get github-token"],
    id: (_row, [name = ""]) => name,
  }),
  command({
    name: "grant",
    about: "Let workers use a secret",
    args: ["secret"],
    options: { worker: { ...WORKERS, required: true } },
    examples: ["secret grant github-token --worker Ada"],
    run: (context) => changeWorkers(context, (before, given) => [...new Set([...before, ...given])]),
  }),
  command({
    name: "revoke",
    about: "Revoke a secret from workers. Their runs fail until they stop using it",
    args: ["secret"],
    options: {
      worker: { ...WORKERS, about: "worker that may no longer use it; repeat for several", required: true },
    },
    examples: ["secret revoke github-token --worker Ada"],
    run: (context) => changeWorkers(context, (before, given) => before.filter((id) => !given.includes(id))),
  }),
  requestCommand({
    name: "delete",
    about: "Delete a secret. Later runs of workers that use it fail",
    endpoint: "DELETE /api/secrets/:name",
    args: ["secret"],
    examples: ["secret delete github-token"],
    options: { yes: YES },
    id: (_row, [name = ""]) => name,
    async input({ yes }, context) {
      const [name = ""] = context.args;
      if (!yes) await confirmLoss(context, `Delete secret ${name}? Its value cannot be restored.`);
      return {};
    },
  }),
];

/** Reads a value and removes line breaks at its end, as `gh secret set` does. */
async function readValue(io: Io, fromStdin: boolean, file: string | undefined): Promise<string> {
  const value = file !== undefined
    ? await readInputFile(io, file, { flag: "--file", maxBytes: INPUT_MAX_BYTES })
    : fromStdin || !io.inIsTerminal
    ? await readText(io, INPUT_MAX_BYTES, "--stdin")
    : await new SecretPrompt(io).ask("Value");
  const trimmed = value.replace(/[\r\n]+$/, "");
  if (trimmed === "") throw usageError("the value must not be empty. Changed nothing.");
  return trimmed;
}

function resolveWorkers(client: Client, refs: readonly string[]): Promise<string[]> {
  return Promise.all(refs.map((ref) => resolveRef(client, "worker", ref)));
}

/** Returns the workers that may use a secret, none for a new one. */
async function listWorkers(client: Client, name: string): Promise<string[]> {
  return await client.call("GET /api/secrets/:name", { params: { name } }).then(
    ({ value }) => value.workers,
    (error) => {
      if (error instanceof ServiceError && error.code === "not_found") return [];
      throw error;
    },
  );
}

async function changeWorkers(
  { client, out, args: [name = ""], options: { worker } }: Context<{ worker: typeof WORKERS }>,
  change: (before: string[], given: string[]) => string[],
): Promise<void> {
  const given = await resolveWorkers(client, worker ?? []);
  const { value: { workers } } = await client.call("GET /api/secrets/:name", { params: { name } });
  const body = { workers: change(workers, given) };
  const answer = await client.call("PUT /api/secrets/:name", { params: { name }, body });
  out.object(answer.json, answer.value, name);
}
