import { option, type OptionSpec, SHARED_OPTIONS } from "./command.ts";

/** A command of `svc` itself, for help, completion and the man page. */
interface TopCommand {
  about: string;
  usage: string;
  subcommands?: Record<string, string>;
  options?: readonly OptionSpec[];
  /** Whether completion offers files. */
  files?: boolean;
  /** Further text of the help. */
  more?: string;
}

const CONFIG: OptionSpec = SHARED_OPTIONS.config;
const STANDBY = "wait while another server uses the database, and take over when it stops";
const FIX = "fix permissions and a missing data directory";

/** Every command of `svc`. Those of `ctl` are its groups. */
export const TOP_COMMANDS: Record<string, TopCommand> = {
  serve: {
    about: "Run the service until SIGTERM or SIGINT",
    usage: "serve [-c config.yaml] [--no-console] [--standby]",
    options: [
      CONFIG,
      option.flag("--no-console", "do not serve the web console"),
      option.flag("--standby", STANDBY),
    ],
    more:
      "Without a configuration, svc listens on 127.0.0.1:8080 and stores its data in ./data. The first start prints the\n" +
      "password. An environment variable sets a key: SVC_SERVER__PORT=9000 sets server.port. Exit codes: 2 for an invalid\n" +
      "configuration, 1 if the port is in use or another server took over the database, 5 if another server uses the data\n" +
      "directory. With --standby (requires a libSQL server), svc returns 503 for everything but /livez until it takes over.",
  },
  runner: {
    about: "Run workers here for a service on another machine",
    usage: "runner --url https://host --token-file <path> [-c runner.yaml] [--once]",
    options: [
      option.text("--url <url>", "address of the service"),
      option.text("--token-file <path>", "file with the token from svc ctl runner add"),
      option.text("-c, --config <path>", "file with work_root, max_runs and engines of this machine"),
      option.flag("--once", "do one run in a new directory, remove the directory and exit"),
    ],
    files: true,
    more:
      "SVC_RUNNER_URL and SVC_RUNNER_TOKEN_FILE are the defaults of --url and --token-file. With --once, exit code 0 means\n" +
      "that the service has the end of the run, whatever it is, or that another run was not wanted; 1 that the service\n" +
      "does not have it; 124 that no run came within 5 minutes.\n" +
      "Stops at SIGTERM or SIGINT. Exit codes: 2 for an invalid configuration, 4 if the service refuses the token, 5 if\n" +
      "another runner uses work_root.",
  },
  ctl: { about: "Control a running service", usage: "ctl <group> <command> [arguments] [flags]" },
  restore: {
    about: "Replace the data with a backup while the service is stopped",
    usage: "restore <file> [-c config.yaml] [--yes] [--new-key] [--paused]",
    options: [
      CONFIG,
      option.flag("--yes", "skip the confirmation"),
      option.flag("--new-key", "create a new signing key, which ends all tokens"),
      option.flag("--paused", "pause every schedule until svc ctl system resume"),
    ],
    files: true,
    more: "The replaced data stays in a directory next to the data directory.",
  },
  service: {
    about: "Run svc as a service under systemd (Linux) or launchd (macOS)",
    usage: "service <command> [flags]",
    subcommands: {
      print: "Print the unit without changing anything",
      install: "Write the unit and start the service, now and at boot",
      uninstall: "Stop the service and remove the unit; keep data, configuration and account",
      status: "Show the status; exit code 0 if running, 6 if stopped, 3 if not installed",
    },
    options: [
      option.text(
        "-c, --config <path>",
        "configuration (default /etc/svc/config.yaml or ~/.config/svc/config.yaml)",
      ),
      option.flag("--system", "for the whole machine (default for root)"),
      option.flag("--user", "only for your user account"),
      option.text("--data-dir <path>", "data directory (default /var/lib/svc or ~/.local/share/svc)"),
      option.text(
        "--run-as <account>",
        "account of the service, created if missing (default svc); with --system",
      ),
      option.text(
        "--env-file <path>",
        "file of NAME=value lines (default: the file environment next to the configuration)",
      ),
      option.list("--writable <path>", "additional directory that workers can write to; repeatable"),
      option.flag("--standby", "start with serve --standby"),
      option.text("--program <path>", "executable (default this one)"),
      option.text("--name <name>", "name of the service, for a second one (default svc)"),
      option.flag("--json", "with status: print one JSON object"),
    ],
  },
  health: {
    about: "Exit with 0 if the service is ready, 6 if not",
    usage: "health [-c config.yaml]",
    options: [CONFIG],
    more: "For health checks of containers and scripts. Needs no token.",
  },
  mcp: {
    about: "Serve the tools of the service to an agent over stdin and stdout (MCP)",
    usage: "mcp",
    more:
      "For agents that cannot use an MCP server over HTTP. SVC_URL is the address of the service; SVC_TOKEN, or the file\n" +
      "SVC_TOKEN_FILE, which each call reads again, has the token.",
  },
  doctor: {
    about: "Check the service, or this machine if the service is down",
    usage: "doctor [-c config.yaml] [--fix] [--json]",
    options: [CONFIG, option.flag("--fix", FIX), option.flag("--json", "print one JSON object")],
    more: "Same as svc ctl system doctor. Exit code 1 if a check fails.",
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
    options: [option.flag("--json", "print the versions of all components as JSON")],
  },
  help: {
    about: "Print the help of a command",
    usage: "help [command]",
    subcommands: { ctl: "", service: "" },
  },
};

export function formatMainHelp(): string {
  return `svc runs AI agents as workers: messages in, tasks out, replies back.

Usage: svc <command> [flags]

Commands:
${formatRows(Object.entries(TOP_COMMANDS).map(([name, { about }]) => [`svc ${name}`, about]))}

Run \`svc help <command>\` for the flags of a command, and \`svc ctl help\` to control a running service.
`;
}

/** Returns the help of one command of `svc`, or null for an unknown name. */
export function formatTopHelp(name: string): string | null {
  const command = Object.hasOwn(TOP_COMMANDS, name) ? TOP_COMMANDS[name] : undefined;
  if (command === undefined) return null;
  const { about, usage, subcommands = {}, options = [], more } = command;
  const named = Object.entries(subcommands).filter(([, words]) => words !== "");
  const flags = options.map((one): [string, string] => [
    one.flags,
    one.about + (one.default === undefined ? "" : ` (default ${one.default})`),
  ]);
  return [
    `Usage: svc ${usage}`,
    `${about}.`,
    ...(named.length === 0 ? [] : [`Commands:\n${formatRows(named)}`]),
    ...(flags.length === 0 ? [] : [`Flags:\n${formatRows(flags)}`]),
    ...(more === undefined ? [] : [more]),
  ].join("\n\n") + "\n";
}

function formatRows(rows: [string, string][]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, words]) => `  ${name.padEnd(width)}  ${words}`).join("\n");
}
