import type { Io } from "./cli/terminal/io.ts";
import { load } from "./src/base/load.ts";
import { versionText } from "./src/base/version.ts";

const HELP = `svc runs AI worker agents: messages in, tasks out, replies back.

Usage:
  svc serve [-c config.yaml] [--no-console] [--standby]
                                    Run the service, with the web console at / or without, or wait to take over
  svc runner --url https://host --token-file <path> [-c runner.yaml]
                                    Run workers of a service that is on another machine
  svc ctl <group> <command> ...     Control a running service
  svc restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]
                                    Put a backup in the place of the data, with the service stopped
  svc service <command>             Run it under systemd or launchd: print, install, uninstall, status
  svc doctor [-c config.yaml] [--fix]
                                    Check the service, or this machine when it does not run
  svc mcp                           Tools of the service for an agent, over stdin and stdout
  svc health [-c config.yaml]       Exit 0 when the service is ready, 6 when not
  svc completion bash|zsh|fish      Print the completion script of a shell
  svc version [--json]              Print the version, or with --json all that is inside
  svc help [command]                Print this, or the help of ctl or service

Try: svc ctl help
`;

/** The front door: each command loads only what it needs, so that \`ctl\` never pays for the server (contract 6). */
async function main(args: string[]): Promise<number> {
  const [command = "help", ...rest] = args;
  if (!HAVE_HELP.includes(command) && rest.some((arg) => arg === "--help" || arg === "-h")) {
    return await help([command]);
  }
  // "inspect" is for the service itself: it is not in the help.
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
      const { printFaults } = await load<typeof import("./src/boot/inspect.ts")>(
        "./src/boot/inspect.ts",
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
      if (unknown !== undefined) return refuse(`svc: version does not know ${JSON.stringify(unknown)}`);
      console.log(versionText(rest.length > 0));
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

// These print their own help.
const HAVE_HELP = ["ctl", "service", "complete"];

async function help([command, ...rest]: string[]): Promise<number> {
  if (command === "ctl") return await control(["help", ...rest]);
  if (command === "service") return await main(["service", "help"]);
  if (command === undefined || command.startsWith("-")) {
    console.log(HELP.trimEnd());
    return 0;
  }
  const { formatTopHelp } = await load<typeof import("./cli/commands/top_commands.ts")>(
    "./cli/commands/top_commands.ts",
    import.meta.url,
  );
  const text = formatTopHelp(command);
  if (text === null) return await refuseCommand(command);
  console.log(text.trimEnd());
  return 0;
}

async function refuseCommand(command: string): Promise<number> {
  const { GROUPS } = await load<typeof import("./cli/commands/groups.ts")>(
    "./cli/commands/groups.ts",
    import.meta.url,
  );
  const meant = Object.hasOwn(GROUPS, command) ? `did you mean: svc ctl ${command}` : "see: svc help";
  return refuse(`svc: no command is called ${JSON.stringify(command)}; ${meant}`);
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
  const { printCandidates, printCompletionScript } = await load<
    typeof import("./cli/completion/completion.ts")
  >(
    "./cli/completion/completion.ts",
    import.meta.url,
  );
  const io = await processIo();
  return command === "complete" ? await printCandidates(args, io) : printCompletionScript(args, io);
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
