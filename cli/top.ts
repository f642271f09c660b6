import { type OptionSpec, SHARED_OPTIONS } from "./command.ts";

/** A command of `svc` itself: what can be typed behind it, for help, completion and the man page. */
interface TopCommand {
  about: string;
  usage: string;
  /** Words that may come first, with what they do. */
  words?: Record<string, string>;
  options?: readonly OptionSpec[];
  /** Whether files may be named. */
  files?: boolean;
  /** What else there is to know. */
  more?: string;
}

const CONFIG: OptionSpec = { ...SHARED_OPTIONS.config };
const flag = (flags: string, about: string): OptionSpec => ({ flags, about, type: "flag" });
const value = (flags: string, about: string): OptionSpec => ({ flags, about, type: "text" });

/** Every command of `svc`; those of `ctl` are its groups. */
export const TOP: Record<string, TopCommand> = {
  serve: {
    about: "Run the service until SIGTERM or SIGINT",
    usage: "serve [-c config.yaml] [--no-console] [--standby]",
    options: [
      CONFIG,
      flag("--no-console", "without the web console at /"),
      flag("--standby", "wait while another server holds the database, and take over when it is gone"),
    ],
    more:
      "Without a configuration it listens on 127.0.0.1:8080 and keeps its data in ./data. Every key can be set in the environment, too:\n" +
      "SVC_SERVER__PORT=9000 is server.port. The first start prints the password. Exit codes: 2 for a wrong configuration,\n" +
      "1 when the port is taken or another server took the database over, 5 when another server uses the data directory.\n" +
      "With --standby (a database on a libSQL server) it answers /livez, and 503 to all else, until it takes over: docs/how-to/run-a-standby.md.",
  },
  runner: {
    about: "Run workers of a service that is on another machine, until SIGTERM or SIGINT",
    usage: "runner --url https://host --token-file <path> [-c runner.yaml]",
    options: [
      value("--url <url>", "where the service is"),
      value("--token-file <path>", "the token that svc ctl runner add prints"),
      value("-c, --config <path>", "work_root, max_runs and engines of this machine"),
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
      flag("--yes", "do not ask"),
      flag("--new-key", "make a new key, which ends every token from before"),
      flag("--paused", "pause every schedule until svc ctl system resume"),
    ],
    files: true,
    more: "What was there is kept beside it.",
  },
  service: {
    about: "Run it under systemd or launchd",
    usage: "service <command> [flags]",
    words: {
      print: "Print the unit and change nothing",
      install: "Write the unit, start it now and at every start of the machine",
      uninstall: "Stop it and remove the unit; data, configuration and account stay",
      status: "Exit 0 when it runs, 6 when not, 3 when it is not installed",
    },
    options: [
      CONFIG,
      flag("--system", "for the whole machine; the default for root"),
      flag("--user", "for you alone"),
      value("--data-dir <path>", "data directory"),
      value("--run-as <account>", "account that it runs as, made when missing"),
      value("--env-file <path>", "NAME=value lines for it and its engines"),
      { ...value("--writable <path>", "another directory in which workers may write"), type: "list" },
      flag("--standby", "serve --standby: wait while another machine serves (docs/how-to/run-a-standby.md)"),
      value("--program <path>", "the executable"),
      value("--name <name>", "name of the service, for a second one"),
      flag("--json", "with status: one JSON object"),
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
      flag("--fix", "put right what is safe: permissions, a missing data directory"),
      flag("--json", "one JSON object"),
    ],
    more: "The same as svc ctl system doctor. Exit code 1 when a check fails.",
  },
  completion: {
    about: "Print the completion script of a shell",
    usage: "completion bash|zsh|fish",
    words: { bash: "", zsh: "", fish: "" },
    more: "In ~/.bashrc or ~/.zshrc:      source <(svc completion bash)\n" +
      "In ~/.config/fish/config.fish: svc completion fish | source",
  },
  version: {
    about: "Print the version",
    usage: "version [--json]",
    options: [flag("--json", "all that is inside")],
  },
  help: { about: "Print the help", usage: "help [command]", words: { ctl: "", service: "" } },
};

/** The help of one command of `svc`, or null when there is none of this name. */
export function topHelp(name: string): string | null {
  const command = Object.hasOwn(TOP, name) ? TOP[name] : undefined;
  if (command === undefined) return null;
  const { about, usage, options = [], more } = command;
  const width = Math.max(0, ...options.map((option) => option.flags.length));
  const flags = options.map((option) =>
    `  ${option.flags.padEnd(width)}  ${option.about}${fallback(option)}`
  );
  return [
    `Usage: svc ${usage}`,
    `${about}.`,
    ...(flags.length === 0 ? [] : [`Flags:\n${flags.join("\n")}`]),
    ...(more === undefined ? [] : [more]),
  ].join("\n\n") + "\n";
}

function fallback(option: OptionSpec): string {
  return option.default === undefined ? "" : ` (default ${option.default})`;
}
