import { type OptionSpec, SHARED_OPTIONS } from "./command.ts";

/** A command of `svc` itself: what can be typed behind it, for help, completion and the man page. */
interface TopCommand {
  about: string;
  usage: string;
  /** Words that may come first, with what they do. */
  subcommands?: Record<string, string>;
  options?: readonly OptionSpec[];
  /** Whether files may be named. */
  files?: boolean;
  /** What else there is to know. */
  more?: string;
}

const CONFIG: OptionSpec = { ...SHARED_OPTIONS.config };
const createFlag = (flags: string, about: string): OptionSpec => ({ flags, about, type: "flag" });
const createValue = (flags: string, about: string): OptionSpec => ({ flags, about, type: "text" });

/** Every command of `svc`; those of `ctl` are its groups. */
export const TOP_COMMANDS: Record<string, TopCommand> = {
  serve: {
    about: "Run the service until SIGTERM or SIGINT",
    usage: "serve [-c config.yaml] [--no-console] [--standby]",
    options: [
      CONFIG,
      createFlag("--no-console", "without the web console at /"),
      createFlag("--standby", "wait while another server holds the database, and take over when it is gone"),
    ],
    more:
      "Without a configuration it listens on 127.0.0.1:8080 and keeps its data in ./data. Every key can be set in the environment, too:\n" +
      "SVC_SERVER__PORT=9000 is server.port. The first start prints the password. Exit codes: 2 for a wrong configuration,\n" +
      "1 when the port is taken or another server took the database over, 5 when another server uses the data directory.\n" +
      "With --standby (a database on a libSQL server) it answers /livez, and 503 to all else, until it takes over: docs/machines.md.",
  },
  runner: {
    about: "Run workers of a service that is on another machine, until SIGTERM or SIGINT",
    usage: "runner --url https://host --token-file <path> [-c runner.yaml]",
    options: [
      createValue("--url <url>", "where the service is"),
      createValue("--token-file <path>", "the token that svc ctl runner add prints"),
      createValue("-c, --config <path>", "work_root, max_runs and engines of this machine"),
    ],
    files: true,
    more:
      "Exit codes: 2 for a wrong configuration, 4 when the service refuses it, 5 when another one works in work_root.",
  },
  ctl: { about: "Control a running service", usage: "ctl <group> <command> ..." },
  restore: {
    about: "Put a backup in the place of the data, with the service stopped",
    usage: "restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]",
    options: [
      CONFIG,
      createFlag("--yes", "do not ask"),
      createFlag("--new-key", "make a new key, which ends every token from before"),
      createFlag("--paused", "pause every schedule until svc ctl system resume"),
    ],
    files: true,
    more: "What was there is kept beside it.",
  },
  service: {
    about: "Run it under systemd or launchd",
    usage: "service <command> [flags]",
    subcommands: {
      print: "Print the unit and change nothing",
      install: "Write the unit, start it now and at every start of the machine",
      uninstall: "Stop it and remove the unit; data, configuration and account stay",
      status: "Exit 0 when it runs, 6 when not, 3 when it is not installed",
    },
    options: [
      CONFIG,
      createFlag("--system", "for the whole machine; the default for root"),
      createFlag("--user", "for you alone"),
      createValue("--data-dir <path>", "data directory"),
      createValue("--run-as <account>", "account that it runs as, made when missing"),
      createValue("--env-file <path>", "NAME=value lines for it and its engines"),
      { ...createValue("--writable <path>", "another directory in which workers may write"), type: "list" },
      createFlag("--standby", "serve --standby: wait while another machine serves (docs/machines.md)"),
      createValue("--program <path>", "the executable"),
      createValue("--name <name>", "name of the service, for a second one"),
      createFlag("--json", "with status: one JSON object"),
    ],
  },
  health: {
    about: "Exit 0 when the service is ready, 6 when not",
    usage: "health [-c config.yaml]",
    options: [CONFIG],
    more: "For the health checks of containers and scripts: needs no token.",
  },
  mcp: {
    about: "Tools of the service for an agent, over stdin and stdout (Model Context Protocol)",
    usage: "mcp",
    more:
      "For agents that take no tool server over HTTP, and for those that stay open between runs: SVC_URL says where the service is,\n" +
      "SVC_TOKEN or the file SVC_TOKEN_FILE, which is read for each call, in whose name.",
  },
  doctor: {
    about: "Check the service, or this machine when it does not run, and say what to do",
    usage: "doctor [-c config.yaml] [--fix] [--json]",
    options: [
      CONFIG,
      createFlag("--fix", "put right what is safe: permissions, a missing data directory"),
      createFlag("--json", "one JSON object"),
    ],
    more: "The same as svc ctl system doctor. Exit code 1 when a check fails.",
  },
  completion: {
    about: "Print the completion script of a shell",
    usage: "completion bash|zsh|fish",
    subcommands: { bash: "", zsh: "", fish: "" },
    more: "In ~/.bashrc or ~/.zshrc:      source <(svc completion bash)\n" +
      "In ~/.config/fish/config.fish: svc completion fish | source",
  },
  version: {
    about: "Print the version",
    usage: "version [--json]",
    options: [createFlag("--json", "all that is inside")],
  },
  help: { about: "Print the help", usage: "help [command]", subcommands: { ctl: "", service: "" } },
};

/** The help of one command of `svc`, or null when there is none of this name. */
export function formatTopHelp(name: string): string | null {
  const command = Object.hasOwn(TOP_COMMANDS, name) ? TOP_COMMANDS[name] : undefined;
  if (command === undefined) return null;
  const { about, usage, options = [], more } = command;
  const width = Math.max(0, ...options.map((option) => option.flags.length));
  const flags = options.map((option) =>
    `  ${option.flags.padEnd(width)}  ${option.about}${formatDefault(option)}`
  );
  return [
    `Usage: svc ${usage}`,
    `${about}.`,
    ...(flags.length === 0 ? [] : [`Flags:\n${flags.join("\n")}`]),
    ...(more === undefined ? [] : [more]),
  ].join("\n\n") + "\n";
}

function formatDefault(option: OptionSpec): string {
  return option.default === undefined ? "" : ` (default ${option.default})`;
}
