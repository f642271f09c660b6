import type { Io } from "./cli/terminal/io.ts";
import { load } from "./src/base/lazy_import.ts";
import { formatVersion } from "./src/base/version.ts";

/** Runs a command. Each command loads only its own modules, so `ctl` never pays for the server (contract 6). */
async function main(args: string[]): Promise<number> {
  const [command = "help", ...rest] = args;
  if (!HAVE_HELP.includes(command) && rest.some((arg) => arg === "--help" || arg === "-h")) {
    return await help([command]);
  }
  // The help has no "inspect": the service itself uses it.
  switch (command) {
    case "serve": {
      const { serve } = await load<typeof import("./src/boot/serve.ts")>(
        "./src/boot/serve.ts",
        import.meta.url,
      );
      return await serve(rest);
    }
    case "runner": {
      const { runner } = await load<typeof import("./src/boot/runner.ts")>(
        "./src/boot/runner.ts",
        import.meta.url,
      );
      return await runner(rest);
    }
    case "ctl":
      return await control(rest);
    case "mcp": {
      const { runMcp } = await load<typeof import("./cli/mcp.ts")>("./cli/mcp.ts", import.meta.url);
      return await runMcp(rest, await processIo());
    }
    case "doctor":
      return await control(["system", "doctor", ...rest]);
    case "completion":
    case "complete":
      return await completeFor(command, rest);
    case "inspect": {
      const { printFaults } = await load<typeof import("./src/boot/print_problems.ts")>(
        "./src/boot/print_problems.ts",
        import.meta.url,
      );
      return await printFaults(rest);
    }
    case "restore":
      return await restoreFrom(rest);
    case "service": {
      const { runService } = await load<typeof import("./cli/service/service.ts")>(
        "./cli/service/service.ts",
        import.meta.url,
      );
      return await runService(rest, await processIo());
    }
    case "health": {
      const { checkHealth } = await load<typeof import("./cli/health.ts")>(
        "./cli/health.ts",
        import.meta.url,
      );
      return await checkHealth(rest, await processIo());
    }
    case "version":
    case "--version":
    case "-V":
    case "-v": {
      const unknown = rest.find((arg) => arg !== "--json");
      if (unknown !== undefined) {
        return refuse(`svc: unknown argument ${JSON.stringify(unknown)} for version`);
      }
      console.log(formatVersion(rest.length > 0));
      return 0;
    }
    case "help":
    case "--help":
    case "-h":
      return await help(rest);
    default:
      return await refuseCommand(command);
  }
}

// Commands that print their own help.
const HAVE_HELP = ["ctl", "service", "complete"];

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
  const { GROUPS } = await load<typeof import("./cli/commands/groups.ts")>(
    "./cli/commands/groups.ts",
    import.meta.url,
  );
  const meant = Object.hasOwn(GROUPS, command) ? `Did you mean \`svc ctl ${command}\`?` : "See `svc help`.";
  return refuse(`svc: unknown command ${JSON.stringify(command)}. ${meant}`);
}

function refuse(words: string): number {
  console.error(words);
  return 2;
}

async function control(args: string[]): Promise<number> {
  const { run } = await load<typeof import("./cli/ctl.ts")>("./cli/ctl.ts", import.meta.url);
  const interrupted = new AbortController();
  Deno.addSignalListener("SIGINT", () => interrupted.abort());
  return await run(args, await processIo(interrupted.signal));
}

async function completeFor(command: "complete" | "completion", args: string[]): Promise<number> {
  const module = await load<typeof import("./cli/completion/completion.ts")>(
    "./cli/completion/completion.ts",
    import.meta.url,
  );
  const io = await processIo();
  return command === "complete"
    ? await module.printCandidates(args, io)
    : module.printCompletionScript(args, io);
}

async function processIo(signal = new AbortController().signal): Promise<Io> {
  return (await load<typeof import("./cli/terminal/io.ts")>("./cli/terminal/io.ts", import.meta.url))
    .openProcessIo(signal);
}

async function restoreFrom(args: string[]): Promise<number> {
  const { parseRestoreArguments, createConfirmation } = await load<typeof import("./cli/restore.ts")>(
    "./cli/restore.ts",
    import.meta.url,
  );
  const parsed = parseRestoreArguments(args);
  if (typeof parsed === "string") return refuse(parsed);
  const { restore } = await load<typeof import("./src/boot/restore.ts")>(
    "./src/boot/restore.ts",
    import.meta.url,
  );
  return await restore({
    ...parsed,
    confirm: createConfirmation(parsed.yes),
    say: (text) => console.error(text),
  });
}

Deno.exit(await main(Deno.args));
