import { type Command, type OptionHandler, RootCommand, script } from "@bomb.sh/tab";
import { Client } from "./client.ts";
import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { EXIT } from "./exit.ts";
import { GROUPS, loadGroup } from "./groups.ts";
import type { Io } from "./io.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** The commands of `svc` itself; those of `ctl` come from its groups. */
const TOP: Record<string, string> = {
  serve: "Run the service",
  ctl: "Control a running service",
  restore: "Put a backup in the place of the data, with the service stopped",
  service: "Run it under systemd or launchd",
  health: "Tell by the exit code whether the service is ready",
  version: "Print the version",
  completion: "Print the completion script of a shell",
  help: "Print the help",
};

/** `svc completion bash|zsh|fish`: prints the script that the shell sources. Answers the exit code (contract 6). */
export function completion(args: string[], io: Io): number {
  const [shell = ""] = args;
  if (!SHELLS.some((known) => known === shell) || args.length !== 1) {
    io.err(`svc: the shell has to be one of ${SHELLS.join(", ")}: svc completion bash\n`);
    io.err("Put it into your profile:  source <(svc completion bash)   or: svc completion fish | source\n");
    return EXIT.usage;
  }
  script(shell, "svc", "svc");
  return EXIT.done;
}

/** `svc complete -- <words>`: what the script asks at each TAB. Prints candidates; silent on every fault. */
export async function complete(args: string[], io: Io): Promise<number> {
  const words = args[0] === "--" ? args.slice(1) : args;
  const root = new RootCommand();
  for (const [name, about] of Object.entries(TOP)) root.command(name, about);
  root.command("completion", TOP.completion ?? "").argument("shell", (found) => {
    for (const shell of SHELLS) found(shell, "");
  });
  for (const name of ["print", "install", "uninstall", "status"]) root.command(`service ${name}`, "");
  configOption(root.command("serve", TOP.serve ?? ""));
  for (const [name, { about }] of Object.entries(GROUPS)) root.command(`ctl ${name}`, about);
  const group = words[0] === "ctl" ? words.slice(1).find((word) => Object.hasOwn(GROUPS, word)) : undefined;
  if (group !== undefined) await declareGroup(root, group, words, io);
  root.parse([...words]);
  return EXIT.done;
}

async function declareGroup(root: RootCommand, name: string, words: string[], io: Io): Promise<void> {
  const group = await loadGroup(name);
  const commands = Array.isArray(group) ? group : [group];
  for (const spec of commands) {
    const path = Array.isArray(group) ? `ctl ${name} ${spec.name}` : `ctl ${name}`;
    const asked = !Array.isArray(group) || words.includes(spec.name);
    const command = root.command(path, spec.about);
    for (const option of Object.values({ ...spec.options, ...SHARED_OPTIONS })) {
      declare(command, option, words);
    }
    const candidates = asked ? await candidatesOf(name, spec, io) : [];
    for (const arg of spec.args ?? []) {
      command.argument(arg, (found) => candidates.forEach(([value, about]) => found(value, about)));
    }
  }
}

function declare(command: Command, option: OptionSpec, words: string[]): void {
  const name = longFlag(option).slice(2);
  const alias = /^-(\w),/.exec(option.flags)?.[1];
  const values = valuesOf(option, words);
  if (values === null) command.option(name, option.about, alias ?? "");
  else if (alias === undefined) command.option(name, option.about, values);
  else command.option(name, option.about, values, alias);
}

/** Candidates of a flag's value; null for a switch, which has none. */
function valuesOf(option: OptionSpec, words: string[]): OptionHandler | null {
  if (option.type === "flag") return null;
  if (/<(path|file)>/.test(option.flags)) return filesLike(words.at(-1) ?? "");
  return (found) => option.choices?.forEach((choice) => found(choice, ""));
}

function configOption(command: Command): void {
  declare(command, SHARED_OPTIONS.config, []);
}

const FILES_MAX = 200;

// The script turns the shell's own file completion off, so files are offered here.
function filesLike(word: string): OptionHandler {
  const folder = word.includes("/") ? word.slice(0, word.lastIndexOf("/") + 1) : "";
  return (found) => {
    try {
      let shown = 0;
      for (const entry of Deno.readDirSync(folder || ".")) {
        const path = folder + entry.name + (entry.isDirectory ? "/" : "");
        if (path.startsWith(word) && ++shown <= FILES_MAX) found(path, "");
      }
    } catch {
      // No such directory: nothing to offer.
    }
  };
}

// A shell waits for its TAB: better no ids than late ones.
const SERVER_WAIT_MS = 1_000;

/** Ids (or names) of what the command's argument means, from the server; none when it does not answer. */
async function candidatesOf(group: string, spec: AnyCommand, io: Io): Promise<[string, string][]> {
  const [arg] = spec.args ?? [];
  if (arg !== "id" && arg !== "id|name") return [];
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(SERVER_WAIT_MS)]);
  const client = new Client({ ...io, signal }, undefined);
  const query = { page_size: 100 };
  try {
    switch (group) {
      case "worker": {
        const { value } = await client.call("GET /api/workers", { query });
        return value.map(({ id, name }) => [id, name]);
      }
      case "department": {
        const { value } = await client.call("GET /api/departments");
        return names(value);
      }
      case "execution": {
        const { value } = await client.call("GET /api/executions", { query });
        return value.map(({ id, status, worker_name }) => [id, `${status} ${worker_name}`]);
      }
      case "message": {
        const { value } = await client.call("GET /api/messages/inbound", { query });
        return value.map(({ id, content }) => [id, content.replace(/\s+/g, " ").slice(0, 40)]);
      }
      default:
        return [];
    }
  } catch {
    return [];
  }
}

interface Named {
  name: string;
  children: Named[];
}

function names(trees: readonly Named[]): [string, string][] {
  return trees.flatMap(({ name, children }) => [[name, ""] as [string, string], ...names(children)]);
}
