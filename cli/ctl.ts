import { load } from "../src/base/lazy_import.ts";
import { formatVersion } from "../src/base/version.ts";
import { ServiceError } from "../src/domain/call/error.ts";
import { Client } from "./client/client.ts";
import { isConnectionLost } from "./client/connection.ts";
import { type AnyCommand, type Context, findFlag, type OptionSpec, parseValues } from "./commands/command.ts";
import { parseDuration } from "./commands/duration.ts";
import { EXIT, Exit, getExitCode, usageError } from "./terminal/exit.ts";
import { BrokenPipe, type Io } from "./terminal/io.ts";
import { Output } from "./terminal/output.ts";
import { type ParsedLine, parsePlainLine } from "./commands/plain_line.ts";
import { formatErrorJson } from "./client/error_json.ts";
import { resolveRef } from "./client/resource_ref.ts";
import { createStyle } from "./terminal/style.ts";
import { Problem } from "./client/transport.ts";
import { escapeControls } from "./terminal/visible.ts";

const VERSION_FLAGS = ["--version", "-V", "-v"];

/** `svc ctl`: runs one command and returns its exit code (contract 6). Loads only the requested group. */
export async function run(args: string[], io: Io): Promise<number> {
  const json = args.includes("--json");
  if (VERSION_FLAGS.includes(args[0] ?? "")) {
    io.out(`${formatVersion(json)}\n`);
    return EXIT.done;
  }
  try {
    const line = await parsePlainLine(args) ?? await parseOtherLine(args, io, json);
    if (line !== null) await runLine(line, io);
    return EXIT.done;
  } catch (error) {
    return fail(error, io, json);
  }
}

// commander takes longer to load than all of ctl, so only help and mistakes load it.
async function parseOtherLine(args: string[], io: Io, json: boolean): Promise<ParsedLine | null> {
  const { parseLine } = await load<typeof import("./commands/parser.ts")>(
    "./commands/parser.ts",
    import.meta.url,
  );
  return await parseLine(args, io, json);
}

async function runLine({ spec, args, given }: ParsedLine, io: Io): Promise<void> {
  try {
    await spec.run(await buildContext(spec, args, given, io));
  } catch (error) {
    throw error instanceof Problem ? error.named((field) => findFlag(field, spec)) : error;
  }
}

function fail(error: unknown, io: Io, json: boolean): number {
  if (error instanceof BrokenPipe) return EXIT.done;
  if (io.signal.aborted) return EXIT.interrupted;
  if (!(error instanceof ServiceError) && isConnectionLost(error)) {
    return fail(
      new ServiceError("unavailable", "Cannot finish the request: the connection was lost. Try again."),
      io,
      json,
    );
  }
  const words = error instanceof Error ? error.message : String(error);
  const known = error instanceof Exit || error instanceof ServiceError || isConfigError(error);
  if (words !== "") {
    if (json) io.err(formatErrorJson(error, words) + "\n");
    else io.err(`svc: ${escapeControls(words)}${formatAdvice(error, io)}\n`);
  }
  if (!known && error instanceof Error && io.env.SVC_DEBUG) io.err(`${error.stack}\n`);
  return isConfigError(error) ? EXIT.usage : getExitCode(error);
}

function isConfigError(error: unknown): boolean {
  return error instanceof Error && error.name === "ConfigError";
}

// An agent cannot get more scopes by another login, so its error names another way out.
function formatAdvice(error: unknown, io: Io): string {
  if (!io.env.SVC_RUN_ID || !(error instanceof Problem) || !error.json.includes('"required_scope"')) {
    return "";
  }
  return ". Continue without it, or mention it in your answer.";
}

const RECONNECT_MS = 60_000;

async function buildContext(
  spec: AnyCommand,
  args: string[],
  given: Record<string, unknown>,
  io: Io,
): Promise<Context> {
  const configFlag = typeof given.config === "string" ? given.config : undefined;
  const ca = typeof given.ca === "string" ? given.ca : undefined;
  if (configFlag === "") throw usageError("--config must not be empty");
  if (ca === "") throw usageError("--ca must not be empty");
  const format = given.json ? "json" : given.quiet ? "ids" : io.outIsTerminal ? "table" : "tsv";
  const reconnectMs = parseDuration(given.reconnect, "--reconnect", RECONNECT_MS);
  const client = new Client(io, { config: configFlag, ca, reconnectMs });
  const options = parseValues(spec, given);
  return {
    io,
    client,
    out: new Output(io, format, await createStyle(io.outIsTerminal, io.env)),
    args: await resolveArgs(spec, args, client),
    typed: args,
    options: await resolveOptions(spec, options, client),
    configFlag,
    note: (text) => io.err(text + "\n"),
    reportId: (what, id, more = "") =>
      io.err(format === "json" ? `${JSON.stringify({ [what]: id })}\n` : `${what} ${id}${more}\n`),
  };
}

async function resolveArgs(spec: AnyCommand, args: string[], client: Client): Promise<string[]> {
  const names = (spec.args ?? []).map((arg) => arg.replace(/[[\]]/g, ""));
  return await Promise.all(args.map((arg, at) => {
    const kind = spec.refs?.[names[at] ?? ""];
    return kind === undefined ? arg : resolveRef(client, kind, arg);
  }));
}

async function resolveFlag(client: Client, { ref, takesOthers }: OptionSpec, given: string): Promise<string> {
  if (ref === undefined) return given;
  return await resolveRef(client, ref, given).catch((error) => {
    if (takesOthers && error instanceof ServiceError && error.code === "not_found") return given;
    throw error;
  });
}

// Each value of a filter with several values may be a name.
async function resolveOptions(
  spec: AnyCommand,
  options: Context["options"],
  client: Client,
): Promise<Context["options"]> {
  const resolved = await Promise.all(
    Object.entries(options).map(async ([name, value]) => {
      const option = spec.options[name];
      if (option?.ref === undefined || typeof value !== "string") return [name, value];
      return [
        name,
        (await Promise.all(value.split(",").map((one) => resolveFlag(client, option, one)))).join(","),
      ];
    }),
  );
  return Object.fromEntries(resolved);
}
