import { resolve } from "node:path";
import { load } from "../../../src/base/lazy_import.ts";
import { exists, refuseExisting, saveBackup } from "../../client/backup_file.ts";
import { Problem } from "../../client/transport.ts";
import { formatRelativeTime, paintStatus, type Row, toColumns } from "../../terminal/column.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import type { Output } from "../../terminal/output.ts";
import { readInputFile } from "../../terminal/input_text.ts";
import { confirm, readLines, readNewPassword, readPassword, SecretPrompt } from "../../terminal/prompt.ts";
import { escapeControls } from "../../terminal/visible.ts";
import { type AnyCommand, type BaseContext, command, option } from "../command.ts";
import { requestCommand } from "../resource.ts";

// The limit of the server.
const SNIPPET_MAX_BYTES = 64 * 1024;
const RECENT_COLUMNS = toColumns("id worker_name status failure created_at instruction");

export const group: AnyCommand[] = [
  command({
    name: "overview",
    about: "Show the state of workers, tasks and executions, today's usage and recent runs",
    examples: ["system overview", "system overview --json"],
    async run({ client, out }) {
      const { json, value } = await client.call("GET /api/system/overview");
      const recent = value.recent_executions;
      if (out.format === "json" || out.format === "ids") {
        return await out.list(json, recent, RECENT_COLUMNS);
      }
      if (out.format === "tsv") {
        for (const [name, one] of Object.entries(flatten(value))) out.object(json, { [name]: one }, "");
        return;
      }
      const { bold, dim } = out.style;
      out.line(`svc ${value.version}  ${value.state}, started ${formatRelativeTime(value.started_at)}`);
      for (const group of ["workers", "tasks", "executions"] as const) {
        const { total, ...counts } = value[group];
        const words = Object.entries(counts).map(([name, count]) =>
          count === 0 ? dim(`${name} 0`) : `${name} ${count}`
        );
        out.line(`${bold(group.padEnd(11))} ${String(total).padStart(7)}   ${words.join("   ")}`);
      }
      const { executions, failed, ...used } = value.usage_today;
      out.line(
        `${bold("today".padEnd(11))} ${String(executions).padStart(7)}   failed ${failed}${
          formatTokens(used)
        }`,
      );
      for (const worker of used.workers) {
        const name = dim(worker.worker_name.padEnd(9));
        out.line(`  ${name} ${String(worker.executions).padStart(7)}${formatTokens(worker)}`);
      }
      if (value.schedules_paused) {
        out.line(
          `${bold("schedules".padEnd(11))} ${
            out.style.yellow("paused by a restore")
          }   svc ctl system resume`,
        );
      }
      for (const { engine, until } of value.limited_engines) {
        const time = formatRelativeTime(until);
        out.line(`${bold("limited".padEnd(11))} ${out.style.yellow(engine)} available ${time}`);
      }
      if (recent.length > 0) out.line("");
      await out.list(json, recent, RECENT_COLUMNS);
    },
  }),
  requestCommand({
    name: "executions",
    about: "List runs of the coordinator, newest first",
    endpoint: "GET /api/system/executions",
    options: { limit: option.int("--limit <n>", "number of runs, 1 to 100", { default: 10 }) },
    examples: ["system executions", "system executions --limit 50 --json"],
    columns: toColumns("id message_id session_key engine status reason task_count created_at"),
  }),
  requestCommand({
    name: "config",
    about: "List every setting of the running service, its value, and the line or variable that sets it",
    endpoint: "GET /api/system/config",
    columns: toColumns("key value source at"),
    rows: ({ settings }) => settings,
    id: (row) => String(row.key),
    examples: ["system config", "system config --json | jq '.settings[] | select(.source != \"default\")'"],
  }),
  command({
    name: "check-config",
    about: "Check lines for the configuration file without storing them",
    args: ["file|-"],
    examples: ["system check-config telegram.yaml", "system check-config - < telegram.yaml"],
    async run({ client, out, io, note, args: [file = ""] }) {
      const yaml = await readInputFile(io, file, { flag: "the file", maxBytes: SNIPPET_MAX_BYTES });
      const { json, value } = await client.call("POST /api/system/config/check", { body: { yaml } });
      await out.list(json, value.problems, toColumns("line column message"));
      if (!value.valid) throw new Exit(EXIT.usage, "The lines are not valid.");
      note("valid");
    },
  }),
  command({
    name: "password",
    about: "Change the operator's password and end all older tokens",
    options: {
      stdin: option.flag("--stdin", "read the new password, then the current one, as lines from stdin"),
    },
    examples: ["system password", "system password --stdin < new-password"],
    async run({ client, out, options, io }) {
      const prompt = options.stdin ? null : new SecretPrompt(io);
      const [fresh = "", current] = prompt === null ? await readLines(io) : [await readNewPassword(prompt)];
      const change = (body: { new_password: string; current_password?: string }) =>
        client.call("PUT /api/system/password", { body });
      const body = { new_password: fresh, ...(current ? { current_password: current } : {}) };
      const { json, value } = await change(body).catch(async (error) => {
        // Only a token from a login must prove that its holder knows the password (decision 0030).
        if (prompt === null || !needsCurrentPassword(error)) throw error;
        return await change({ new_password: fresh, current_password: await prompt.ask("Current password") });
      });
      out.object(json, value, value.username);
    },
  }),
  command({
    name: "rotate-key",
    about: "Replace the signing key and end all logins and tokens",
    options: { yes: option.flag("--yes", "skip the confirmation") },
    examples: ["system rotate-key --yes"],
    async run({ client, out, io, options }) {
      const question = `End all logins and tokens at ${await client.url()}?`;
      if (!options.yes && !await confirm(io, question, "--yes")) {
        throw new Exit(EXIT.declined, "Canceled. Changed nothing.");
      }
      const { json, value } = await client.call("POST /api/system/rotate-key", { body: {} });
      out.object(json, value, String(value.rotated_at));
    },
  }),
  command({
    name: "backup",
    about: "Write a backup to a new file that only you can read",
    args: ["file"],
    options: {
      force: option.flag("--force", "replace an existing file"),
      includeKey: option.flag(
        "--include-key",
        "include the signing key to keep logins; asks for your password",
      ),
      passwordStdin: option.flag("--password-stdin", "read the password from the first line of stdin"),
    },
    examples: [
      "system backup svc.tar",
      "system backup /backups/svc-$(date +%F).tar -q",
      "system backup svc.tar --include-key --password-stdin < password",
    ],
    async run({ client, out, options, io, args: [file = ""] }) {
      const path = resolve(io.cwd, file);
      if (file === "" || file.endsWith("/")) throw usageError("the file must have a name");
      if (file === "-") throw usageError("Cannot write a backup to stdout. Use ./- for a file of that name.");
      if (!options.force && await exists(path)) throw refuseExisting(path);
      if (options.passwordStdin && !options.includeKey) {
        throw usageError("--password-stdin requires --include-key");
      }
      const body = options.includeKey
        ? { include_key: true, password: await readPassword(io, options.passwordStdin === true, "Password") }
        : {};
      const response = await client.open("POST /api/system/backup", { body });
      const bytes = await saveBackup(response, path, options.force === true);
      const row = { file: path, bytes };
      out.object(JSON.stringify(row), row, path);
    },
  }),
  requestCommand({
    name: "resume",
    about: "Resume all schedules after svc restore --paused",
    endpoint: "POST /api/system/resume",
    examples: ["system resume"],
    id: () => "",
    after(value, { note }) {
      if (!value.resumed) note("no schedule was paused by a restore");
    },
  }),
  command({
    name: "doctor",
    about:
      "Check the service, or this machine if the service is down. With -q, print the names of checks that are not ok",
    options: {
      fix: option.flag("--fix", "fix permissions and a missing data directory on this machine"),
    },
    examples: ["system doctor", "system doctor -q", "system doctor --fix"],
    async run(context) {
      const { out, note, options } = context;
      const { json, value, done } = await runDoctor(context, Boolean(options.fix));
      for (const words of done) note(words);
      if (out.format === "ids") {
        for (const check of value.checks) if (check.status !== "ok") out.line(String(check.name));
      } else if (out.format === "table") value.checks.forEach((check) => printCheck(out, check));
      else {
        const columns = toColumns("name status detail hint");
        await out.list(json, value.checks, columns, (row) => String(row.name));
      }
      const failed = value.checks.filter((check) => check.status === "fail").map((check) => check.name);
      if (failed.length === 0) return;
      // With --json the output already names the failed checks.
      throw new Exit(EXIT.unexpected, out.format === "json" ? "" : `failed checks: ${failed.join(", ")}`);
    },
  }),
];

type DoctorReport = { json: string; value: { checks: Row[] }; done: string[] };

/** Returns the checks of the service, or of this machine while its service is down (contract 8.17). */
async function runDoctor({ client, io, configFlag }: BaseContext, fix: boolean): Promise<DoctorReport> {
  // The checks of this machine say nothing about a service elsewhere.
  const isHere = !io.env.SVC_URL && !io.env.SVC_RUN_ID;
  if (fix && !isHere) {
    throw usageError("--fix works only on the machine of the service, and SVC_URL names another address");
  }
  const { checkMachine } = await load<typeof import("./local_doctor.ts")>(
    "./local_doctor.ts",
    import.meta.url,
  );
  const done = fix ? (await checkMachine(io, configFlag, true)).done : [];
  try {
    return { ...await client.call("GET /api/system/doctor"), done };
  } catch (error) {
    // The checks of this machine may explain why the service cannot be reached.
    if (!isHere || error instanceof Problem || io.signal.aborted) throw error;
    const { answer } = await checkMachine(io, configFlag, false);
    return { json: JSON.stringify(answer), value: answer, done };
  }
}

// A table would cut the details and hints.
function printCheck(out: Output, { name, status, detail, hint }: Row): void {
  const shown = paintStatus(String(status), String(status), out.style);
  const gap = " ".repeat(6 - String(status).length);
  out.line(`${out.style.bold(String(name).padEnd(12))} ${shown}${gap}${escapeControls(String(detail))}`);
  if (hint !== "") out.line(`${" ".repeat(19)}${escapeControls(String(hint))}`);
}

function needsCurrentPassword(error: unknown): boolean {
  return error instanceof Problem && error.json.includes('"current_password"');
}

/** Flattens nested objects to `outer.inner`. Lists become JSON. */
function flatten(row: Row, prefix = ""): Row {
  return Object.fromEntries(
    Object.entries(row).flatMap(([name, value]) =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? Object.entries(flatten(value as Row, `${prefix}${name}.`))
        : [[`${prefix}${name}`, Array.isArray(value) ? JSON.stringify(value) : value]]
    ),
  );
}

function formatTokens(
  used: { input_tokens: number | null; output_tokens: number | null; cost_usd: number | null },
): string {
  const parts = [
    used.input_tokens === null ? "" : `${used.input_tokens} tokens in`,
    used.output_tokens === null ? "" : `${used.output_tokens} out`,
    used.cost_usd === null ? "" : `$${used.cost_usd.toFixed(2)}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "" : `   ${parts.join(", ")}`;
}
