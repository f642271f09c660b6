// Not loaded on demand: from source, Deno compiles each module once, and keeps the result only outside a box.
import { relay } from "./cli/relay.ts";
import type { Io } from "./cli/terminal/io.ts";
import { load } from "./src/base/lazy_import.ts";
import { bypassProxy } from "./src/base/proxy.ts";
import { formatVersion } from "./src/base/version.ts";

/** Runs a command. Each command loads only its own modules, so `ctl` never loads the server (contract 6). */
async function main(args: string[]): Promise<number> {
  const [command = "help", ...rest] = args;
  if (!HAVE_HELP.includes(command) && rest.some((arg) => arg === "--help" || arg === "-h")) {
    return await help([command]);
  }
  const run = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  return run === undefined ? await refuseCommand(command) : await run(rest);
}

// Commands that print their own help.
const HAVE_HELP = ["ctl", "service", "complete"];

type Run = (args: string[]) => number | Promise<number>;

// The help omits `complete`, which the completion scripts call, and `inspect` and `relay`, which the service calls.
const COMMANDS: Record<string, Run> = {
  serve: async (args) =>
    (await load<typeof import("./src/boot/serve.ts")>("./src/boot/serve.ts", import.meta.url)).serve(args),
  runner: async (args) =>
    (await load<typeof import("./src/boot/runner.ts")>("./src/boot/runner.ts", import.meta.url)).runner(args),
  ctl: control,
  restore,
  service: async (args) => (await loadService()).runService(args, await openIo()),
  health: async (args) =>
    (await load<typeof import("./cli/health.ts")>("./cli/health.ts", import.meta.url))
      .checkHealth(args, await openIo()),
  mcp: async (args) =>
    (await load<typeof import("./cli/mcp.ts")>("./cli/mcp.ts", import.meta.url)).runMcp(args, await openIo()),
  doctor: (args) => control(["system", "doctor", ...args]),
  completion: async (args) => (await loadCompletion()).printCompletionScript(args, await openIo()),
  complete: async (args) => (await loadCompletion()).printCandidates(args, await openIo()),
  relay,
  inspect: async (args) => (await loadInspect()).printFaults(args),
  version: printVersion,
  "--version": printVersion,
  "-V": printVersion,
  "-v": printVersion,
  help,
  "--help": help,
  "-h": help,
};

function loadService() {
  return load<typeof import("./cli/service/service.ts")>("./cli/service/service.ts", import.meta.url);
}

function loadCompletion() {
  return load<typeof import("./cli/completion/completion.ts")>(
    "./cli/completion/completion.ts",
    import.meta.url,
  );
}

function loadInspect() {
  return load<typeof import("./src/boot/print_problems.ts")>(
    "./src/boot/print_problems.ts",
    import.meta.url,
  );
}

async function control(args: string[]): Promise<number> {
  const { run } = await load<typeof import("./cli/ctl.ts")>("./cli/ctl.ts", import.meta.url);
  const interrupted = new AbortController();
  Deno.addSignalListener("SIGINT", () => interrupted.abort());
  return await run(args, await openIo(interrupted.signal));
}

async function restore(args: string[]): Promise<number> {
  const { parseRestoreArguments } = await load<typeof import("./cli/restore.ts")>(
    "./cli/restore.ts",
    import.meta.url,
  );
  const options = parseRestoreArguments(args);
  if (typeof options === "string") return refuse(options);
  const module = await load<typeof import("./src/boot/restore.ts")>(
    "./src/boot/restore.ts",
    import.meta.url,
  );
  return await module.restore({ ...options, say: (text) => console.error(text) });
}

function printVersion(args: string[]): number {
  const unknown = args.find((arg) => arg !== "--json");
  if (unknown !== undefined) return refuse(`svc: unknown argument ${JSON.stringify(unknown)} for version`);
  console.log(formatVersion(args.length > 0));
  return 0;
}

async function help([command, ...rest]: string[]): Promise<number> {
  if (command === "ctl") return await control(["help", ...rest]);
  const { formatMainHelp, formatTopHelp } = await load<typeof import("./cli/commands/top_commands.ts")>(
    "./cli/commands/top_commands.ts",
    import.meta.url,
  );
  const text = command === undefined || command.startsWith("-") ? formatMainHelp() : formatTopHelp(command);
  if (text === null) return await refuseCommand(command ?? "");
  console.log(text.trimEnd());
  return 0;
}

async function refuseCommand(command: string): Promise<number> {
  const { suggestTopCommand } = await load<typeof import("./cli/commands/suggestion.ts")>(
    "./cli/commands/suggestion.ts",
    import.meta.url,
  );
  const meant = suggestTopCommand(command) || "See `svc help`.";
  return refuse(`svc: unknown command ${JSON.stringify(command)}. ${meant}`);
}

function refuse(words: string): number {
  console.error(words);
  return 2;
}

async function openIo(signal = new AbortController().signal): Promise<Io> {
  return (await load<typeof import("./cli/terminal/io.ts")>("./cli/terminal/io.ts", import.meta.url))
    .openProcessIo(signal);
}

bypassProxy();
Deno.exit(await main(Deno.args));
