import type { Schemas } from "../../live/api.ts";
import { COMMAND_HINT, type Field, parseCommand, splitWords } from "../../parts/field.tsx";

type Worker = Schemas["Worker"];
type Body = Schemas["WorkerCreate"];

/** A text field of a worker, for its form and its page. Only this table lists the fields. */
interface WorkerField extends Field {
  name: keyof Body & keyof Worker;
  /** Puts the field below "More options". */
  more?: boolean;
  /** Hides the field in the form of an existing worker. */
  createOnly?: boolean;
  scope?: string;
  /** Formats the value for the form. Default: unchanged. */
  format?: (worker: Worker) => string;
  /** Parses the value of the form. Returns undefined to leave the field out of the request. Default: unchanged. */
  parse?: (text: string, before: Worker | null) => unknown;
  /** The presentation on the page of the worker. Default: hidden. */
  show?: "section" | "fact" | "code";
  /** The text for an empty value. */
  none?: string;
}

/** The text fields of a worker, in the order of the form. */
export const WORKER_FIELDS: readonly WorkerField[] = [
  { name: "name", label: "Name", required: true },
  {
    name: "description",
    label: "Description",
    hint: "One line. The coordinator reads it to choose a worker",
  },
  { name: "memory", label: "Instructions", rows: 6, hint: "Part of every prompt", show: "section" },
  {
    name: "constraints",
    label: "Constraints",
    rows: 3,
    hint: "Rules that the worker must follow",
    show: "section",
  },
  {
    name: "engine_args",
    label: "Engine arguments",
    rows: 2,
    hint: "One engine per line, e.g. claude=--model opus",
    more: true,
    show: "code",
    format: ({ engine_args }) =>
      Object.entries(engine_args).map(([engine, text]) => `${engine}=${text}`).join("\n"),
    parse: parseEngineArgs,
  },
  {
    name: "scopes",
    label: "Scopes",
    hint: "E.g. read:tasks write:messages. Leave empty for the default scopes",
    more: true,
    show: "fact",
    none: "default",
    format: ({ scopes }) => scopes.join(" "),
    parse: splitWords,
  },
  {
    name: "verify",
    label: "Check command",
    rows: 3,
    hint: `Runs after each task without a check command. ${COMMAND_HINT}. Leave empty for no check`,
    more: true,
    scope: "write:commands",
    show: "code",
    format: formatCheck,
    // An unchanged command keeps its timeout and its attempts.
    parse: (text, before) =>
      text === (before === null ? "" : formatCheck(before)) ? undefined : parseCommand(text),
  },
  {
    name: "env",
    label: "Variables",
    rows: 3,
    hint:
      "One per line, e.g. LOG_LEVEL=debug. GITHUB_TOKEN=secret:github-token sets the value of a secret that the " +
      "worker may use",
    more: true,
    scope: "write:commands",
    format: formatEnv,
    parse: parseEnv,
  },
  {
    name: "mcp",
    label: "MCP servers",
    rows: 4,
    hint:
      'JSON by name, e.g. {"files": {"command": ["mcp-files", "/srv"], "env": {"KEY": "secret:files-key"}}}. ' +
      "A server over HTTP has url and headers instead",
    more: true,
    scope: "write:commands",
    format: formatServers,
    parse: parseServers,
  },
  {
    name: "skills",
    label: "Skills",
    rows: 3,
    hint:
      "A line for each: the address of a git repository, the full SHA of a commit, and the folder of the SKILL.md. " +
      "svc ctl skill update shows the changes of a newer commit",
    more: true,
    scope: "write:commands",
    format: formatSkills,
    parse: (text, before) =>
      text === (before === null ? "" : formatSkills(before)) ? undefined : parseSkills(text),
  },
  {
    name: "runs_on",
    label: "Runner labels",
    hint:
      "E.g. macos gpu. Leave empty for the service's machine. A change gives the worker an empty directory, and its " +
      "conversations start fresh",
    more: true,
    scope: "write:commands",
    format: ({ runs_on }) => runs_on.join(" "),
    parse: splitWords,
  },
  {
    name: "resources",
    label: "Resources",
    hint: "Requested from the scheduler of a launcher, e.g. cpus=2 memory=8G gpus=1 time=2h",
    more: true,
    scope: "write:commands",
    show: "fact",
    format: ({ resources }) =>
      Object.entries(resources ?? {}).map(([name, value]) => `${name}=${value}`).join(" "),
    parse: parseResources,
  },
  {
    name: "repo",
    label: "Repository",
    rows: 3,
    hint:
      "The address, and below it settings such as base=main, push=ask, per=task or credentials=secret:forge. Each " +
      "conversation then works on a branch of it",
    more: true,
    scope: "write:commands",
    show: "code",
    format: formatRepo,
    parse: (text, before) =>
      text === (before === null ? "" : formatRepo(before)) ? undefined : parseRepo(text),
  },
  {
    name: "work_dir",
    label: "Directory",
    hint: "Leave empty for a new directory in the data of the service or the runner",
    more: true,
    createOnly: true,
  },
];

export function formatField(field: WorkerField, worker: Worker): string {
  return field.format?.(worker) ?? String(worker[field.name]);
}

export function buildRequest(values: Record<string, string>, before: Worker | null): Body {
  const entries = WORKER_FIELDS.filter(({ createOnly = false }) => before === null || !createOnly)
    .map(({ name, parse = String }) => [name, parse(values[name] ?? "", before)] as const)
    .filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Body;
}

function formatCheck({ verify }: Worker): string {
  return verify?.command.join("\n") ?? "";
}

// When a request omits the arguments of an engine, the API keeps them. Empty arguments delete them.
function parseEngineArgs(text: string, before: Worker | null): Record<string, string> {
  const removed = Object.keys(before?.engine_args ?? {}).map((engine) => [engine, ""]);
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  const given = lines.map((line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  });
  return Object.fromEntries([...removed, ...given]);
}

function formatServers({ mcp }: Worker): string {
  return Object.keys(mcp).length === 0 ? "" : JSON.stringify(mcp, null, 2);
}

// When a request omits a server, the API keeps it. Null deletes it. The API explains text that is no JSON.
function parseServers(text: string, before: Worker | null): unknown {
  if (text === (before === null ? "" : formatServers(before))) return undefined;
  const removed = Object.keys(before?.mcp ?? {}).map((name) => [name, null]);
  try {
    return { ...Object.fromEntries(removed), ...(text.trim() === "" ? {} : JSON.parse(text)) };
  } catch {
    return text;
  }
}

function formatSkills({ skills }: Worker): string {
  return skills.map(({ url, ref, path }) => [url, ref, path].filter((word) => word !== "").join(" "))
    .join("\n");
}

function parseSkills(text: string): Record<string, string>[] {
  return text.split("\n").map((line) => line.trim()).filter(Boolean).map((line) => {
    const [, url = "", ref = "", path = ""] = /^(\S+)\s*(\S*)\s*(.*)$/.exec(line) ?? [];
    return { url, ref, path };
  });
}

// A text area of lines cannot hold a value with line breaks, so the form leaves it unchanged.
function isOneLine(value: string): boolean {
  return !/[\r\n]/.test(value);
}

/** Formats the variables as lines. A value with line breaks is left out. */
export function formatEnv({ env }: Worker): string {
  return Object.entries(env).filter(([, value]) => isOneLine(value))
    .map(([name, value]) => `${name}=${value}`).join("\n");
}

// When a request omits a variable, the API keeps it. Null deletes it.
function parseEnv(text: string, before: Worker | null): Record<string, string | null> {
  const old = before?.env ?? {};
  const given = new Map(text.split("\n").filter((line) => line.trim() !== "").map(splitVariable));
  const removed = Object.entries(old).filter(([name, value]) => !given.has(name) && isOneLine(value))
    .map(([name]): [string, null] => [name, null]);
  const changed = [...given].filter(([name, value]) => value !== old[name]);
  return Object.fromEntries([...removed, ...changed]);
}

// Spaces after the first = belong to the value.
function splitVariable(line: string): [name: string, value: string] {
  const at = line.indexOf("=");
  return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1)];
}

function formatRepo({ repo }: Worker): string {
  if (repo === null) return "";
  const { url, path, ...settings } = repo;
  return [url ?? path ?? "", ...Object.entries(settings).map(([name, value]) => `${name}=${value}`)].join(
    "\n",
  );
}

function parseRepo(text: string): Record<string, string> | null {
  const [address = "", ...settings] = text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (address === "") return null;
  const place = address.startsWith("/") ? { path: address } : { url: address };
  return { ...place, ...Object.fromEntries(settings.map(splitVariable)) };
}

/** The server checks the values. */
function parseResources(text: string): unknown {
  const words = splitWords(text);
  if (words.length === 0) return null;
  return Object.fromEntries(words.map((word) => {
    const [name = "", value = ""] = word.split("=");
    return [name, ["cpus", "gpus"].includes(name) && value !== "" ? Number(value) : value];
  }));
}
