import { resolve } from "node:path";
import { alreadyThere, exists, saveArchive } from "../archive_file.ts";
import { field, idField, paintStatus, relativeTime, type Row, statusField, timeField } from "../column.ts";
import { load } from "../../src/base/load.ts";
import { type AnyCommand, command, type Context, fieldsOf } from "../command.ts";
import { EXIT, Exit, usage } from "../exit.ts";
import type { Io } from "../io.ts";
import type { Output } from "../output.ts";
import { confirm, readLines, SecretPrompt } from "../prompt.ts";
import { visible } from "../visible.ts";
import { ServiceError } from "../../src/domain/error.ts";
import { Problem } from "../transport.ts";

const BEE_RUN_COLUMNS = [
  idField(),
  idField("message_id"),
  idField("session_key"),
  field("engine"),
  statusField(),
  field("reason"),
  field("task_count"),
  timeField("created_at"),
];

const RECENT_COLUMNS = [
  idField(),
  field("worker_name"),
  statusField(),
  field("failure"),
  timeField("created_at"),
  field("instruction"),
];

const CHECK_COLUMNS = [field("name"), statusField(), field("detail"), field("hint")];

export const systemCommands: AnyCommand[] = [
  command({
    name: "overview",
    about: "Show how many workers, tasks and executions are in which state, today's use, and what ran last",
    options: {},
    examples: ["system overview", "system overview --json"],
    async run({ client, out }) {
      const { json, value } = await client.call("GET /api/system/overview");
      const recent = value.recent_executions;
      if (out.format === "json" || out.format === "ids") {
        return await out.list(json, recent, RECENT_COLUMNS);
      }
      if (out.format === "tsv") {
        for (const [name, one] of Object.entries(flat(value))) out.object(json, { [name]: one }, "");
        return;
      }
      const { bold, dim } = out.style;
      out.line(`svc ${value.version}  ${value.state}, started ${relativeTime(value.started_at)}`);
      for (const group of ["workers", "tasks", "executions"] as const) {
        const { total, ...counts } = value[group];
        const words = Object.entries(counts).map(([name, count]) =>
          count === 0 ? dim(`${name} 0`) : `${name} ${count}`
        );
        out.line(`${bold(group.padEnd(11))} ${String(total).padStart(7)}   ${words.join("   ")}`);
      }
      const { executions, failed, ...used } = value.usage_today;
      out.line(
        `${bold("today".padEnd(11))} ${String(executions).padStart(7)}   failed ${failed}${tokens(used)}`,
      );
      for (const worker of used.workers) {
        const name = dim(worker.worker_name.padEnd(9));
        out.line(`  ${name} ${String(worker.executions).padStart(7)}${tokens(worker)}`);
      }
      for (const { engine, until } of value.limited_engines) {
        out.line(`${bold("limited".padEnd(11))} ${out.style.yellow(engine)} waits, ${relativeTime(until)}`);
      }
      if (recent.length > 0) out.line("");
      await out.list(json, recent, RECENT_COLUMNS);
    },
  }),
  command({
    name: "executions",
    about: "List the coordinator's latest runs, newest first",
    options: { limit: { flags: "--limit <n>", about: "how many, 1 to 100", type: "int", default: 10 } },
    examples: ["system executions", "system executions --limit 50 --json"],
    async run({ client, out, options }) {
      const { json, value } = await client.call("GET /api/system/executions", { query: fieldsOf(options) });
      await out.list(json, value, BEE_RUN_COLUMNS);
    },
  }),
  command({
    name: "password",
    about: "Change the operator's password; every older token ends",
    options: {
      stdin: {
        flags: "--stdin",
        about:
          "read the new password from the first line of stdin, and the current one, if it is needed, from the second",
        type: "flag",
      },
    },
    examples: ["system password", "system password --stdin < new-password"],
    async run({ client, out, options, io }) {
      const ask = options.stdin ? null : new SecretPrompt(io);
      const [fresh = "", current] = ask === null ? await readLines(io) : [await chosen(ask)];
      const change = (body: { new_password: string; current_password?: string }) =>
        client.call("PUT /api/system/password", { body });
      let answer = await change({ new_password: fresh, ...(current ? { current_password: current } : {}) })
        .catch((error) => {
          // Only a token from a login has to prove that its holder knows the password (decision 0014).
          if (ask === null || !asksForCurrent(error)) throw error;
          return null;
        });
      if (answer === null && ask !== null) {
        answer = await change({ new_password: fresh, current_password: await ask.ask("Current password") });
      }
      if (answer !== null) out.object(answer.json, answer.value, answer.value.username);
    },
  }),
  command({
    name: "rotate-key",
    about: "Make another signing key: every login and every token ends",
    options: { yes: { flags: "--yes", about: "do not ask", type: "flag" } },
    examples: ["system rotate-key --yes"],
    async run({ client, out, io, options }) {
      const question = `End every login and every token at ${await client.url()}?`;
      if (!options.yes && !await confirm(io, question)) throw new Exit(EXIT.declined, "nothing was changed");
      const { json, value } = await client.call("POST /api/system/rotate-key", { body: {} });
      out.object(json, value, String(value.rotated_at));
    },
  }),
  command({
    name: "backup",
    about: "Write a backup of everything to a new file that only you may read; the service goes on",
    args: ["file"],
    options: {
      force: { flags: "--force", about: "replace the file when it is there", type: "flag" },
      includeKey: {
        flags: "--include-key",
        about: "put the signing key into it, so that logins survive a restore; asks for your password",
        type: "flag",
      },
      passwordStdin: {
        flags: "--password-stdin",
        about: "read that password from the first line of stdin",
        type: "flag",
      },
    },
    examples: [
      "system backup svc.tar",
      "system backup /backups/svc-$(date +%F).tar -q",
      "system backup svc.tar --include-key --password-stdin < password",
    ],
    async run({ client, out, options, io, args: [file = ""] }) {
      const path = resolve(io.cwd, file);
      if (file === "" || file.endsWith("/")) throw usage("the file must have a name");
      // Who writes this means stdout, and would look for the archive in vain.
      if (file === "-") throw usage("a backup goes to a file, not to stdout; one of that name is ./-");
      if (!options.force && await exists(path)) throw alreadyThere(path);
      if (options.passwordStdin && !options.includeKey) {
        throw usage("--password-stdin goes with --include-key");
      }
      const body = options.includeKey
        ? { include_key: true, password: await passwordOf(io, options.passwordStdin === true) }
        : {};
      const response = await client.open("POST /api/system/backup", { body });
      const bytes = await saveArchive(response, path, options.force === true);
      const row = { file: path, bytes };
      out.object(JSON.stringify(row), row, path);
    },
  }),
  command({
    name: "resume",
    about: "Let schedules run again that svc restore --paused has paused",
    options: {},
    examples: ["system resume"],
    async run({ client, out, note }) {
      const { json, value } = await client.call("POST /api/system/resume", { body: {} });
      if (!value.resumed) note("nothing was paused");
      out.object(json, value, "");
    },
  }),
  command({
    name: "doctor",
    about:
      "Check the service, or this machine when it does not run, and say what to do; exit code 1 when a check fails",
    options: {
      fix: {
        flags: "--fix",
        about: "put right on this machine what is safe: permissions, a missing data directory",
        type: "flag",
      },
    },
    examples: ["system doctor", "system doctor -q", "system doctor --fix"],
    async run(context) {
      const { out, note } = context;
      const { json, value, done } = await examined(context);
      for (const words of done) note(words);
      if (out.format === "ids") {
        for (const check of value.checks) if (check.status !== "ok") out.line(String(check.name));
      } else if (out.format === "table") value.checks.forEach((check) => printCheck(out, check));
      else await out.list(json, value.checks, CHECK_COLUMNS, (row) => String(row.name));
      const failed = value.checks.filter((check) => check.status === "fail").map((check) => check.name);
      if (failed.length === 0) return;
      // With --json the answer already has everything.
      throw new Exit(EXIT.unexpected, out.format === "json" ? "" : `not well: ${failed.join(", ")}`);
    },
  }),
];

type Examined = { json: string; value: { checks: Row[] }; done: string[] };

/** What the service says of itself; of this machine when its own service is down (contract 8.17). */
async function examined({ client, io, configFlag, options }: Context): Promise<Examined> {
  // Another machine's service, or an agent's: what is here says nothing about it.
  const isHere = !io.env.SVC_URL && !io.env.SVC_RUN_ID;
  const fix = Boolean(options.fix);
  if (fix && !isHere) {
    throw usage("--fix is for the machine of the service, and SVC_URL names another address");
  }
  const { examineLocally } = await load<typeof import("../local_doctor.ts")>(
    "../local_doctor.ts",
    import.meta.url,
  );
  const done = fix ? (await examineLocally(io, configFlag, true)).done : [];
  try {
    return { ...await client.call("GET /api/system/doctor"), done };
  } catch (error) {
    // Whatever it is that keeps us from asking: what is here may tell why.
    if (!isHere || error instanceof Problem || io.signal.aborted) throw error;
    const { answer } = await examineLocally(io, configFlag, false);
    return { json: JSON.stringify(answer), value: answer, done };
  }
}

// No table: what is wrong and the way out of it have to be readable to their ends.
function printCheck(out: Output, { name, status, detail, hint }: Row): void {
  const shown = paintStatus(String(status), String(status), out.style);
  const gap = " ".repeat(6 - String(status).length);
  out.line(`${out.style.bold(String(name).padEnd(12))} ${shown}${gap}${visible(String(detail))}`);
  if (hint !== "") out.line(`${" ".repeat(19)}${visible(String(hint))}`);
}

async function passwordOf(io: Io, stdin: boolean): Promise<string> {
  if (stdin) return (await readLines(io))[0] ?? "";
  return await new SecretPrompt(io, "--password-stdin").ask("Password");
}

async function chosen(ask: SecretPrompt): Promise<string> {
  const fresh = await ask.ask("New password");
  if (await ask.ask("Again") !== fresh) {
    throw usage("the two passwords are not the same; nothing was changed");
  }
  return fresh;
}

function asksForCurrent(error: unknown): boolean {
  return error instanceof Problem && error instanceof ServiceError &&
    error.json.includes('"current_password"');
}

/** Nested objects as `outer.inner`; lists as they are. */
function flat(row: Row, prefix = ""): Row {
  return Object.fromEntries(
    Object.entries(row).flatMap(([name, value]) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.entries(flat(value as Row, `${prefix}${name}.`))
        : [[`${prefix}${name}`, Array.isArray(value) ? JSON.stringify(value) : value]]
    ),
  );
}

function tokens(
  used: { input_tokens: number | null; output_tokens: number | null; cost_usd: number | null },
): string {
  const parts = [
    used.input_tokens === null ? "" : `${used.input_tokens} tokens in`,
    used.output_tokens === null ? "" : `${used.output_tokens} out`,
    used.cost_usd === null ? "" : `$${used.cost_usd.toFixed(2)}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : `   ${parts.join(", ")}`;
}
