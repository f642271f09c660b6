import { load } from "../../src/base/lazy_import.ts";
import { Client } from "../client/client.ts";
import {
  ACTIVE_TASK_STATUSES,
  EVENT_KINDS,
  RESOURCES,
  TASK_STATUSES,
  VERBS,
} from "../../src/domain/call/vocabulary.ts";
import type { Io } from "../terminal/io.ts";

// After TAB, it is better to offer no candidates than to offer them late.
const ANSWER_MAX_MS = 1_000;
const ROWS = { page_size: 100 };

type CompletionValues = [value: string, about: string][];

/** Lists the values of a kind of flag or argument, from the server or the configuration. */
export async function listCompletionValues(kind: string, words: string[], io: Io): Promise<CompletionValues> {
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(ANSWER_MAX_MS)]);
  const client = new Client({ ...io, signal }, {
    config: findFlagValue(["-c", "--config"], words),
    ca: findFlagValue(["--ca"], words),
  });
  return Object.hasOwn(SOURCES, kind) ? await SOURCES[kind]?.(client, words, io) ?? [] : [];
}

const SOURCES: Record<string, (client: Client, words: string[], io: Io) => Promise<CompletionValues>> = {
  worker: async (client) =>
    (await listWorkers(client)).map(({ name, description }) => [name, shorten(description)]),
  user: async (client) => (await client.call("GET /api/users", { query: ROWS })).value.map(toName),
  webhook: async (client) => (await client.call("GET /api/webhooks", { query: ROWS })).value.map(toName),
  runner: async (client) => (await client.call("GET /api/runners", { query: ROWS })).value.map(toName),
  budget: async (client) => (await client.call("GET /api/budgets", { query: ROWS })).value.map(toName),
  token: async (client) => (await client.call("GET /api/tokens", { query: ROWS })).value.map(toName),
  device: async (client) => {
    const { value } = await client.call("GET /api/push/devices", { query: ROWS });
    return value.map(({ id, name, user_name }) => [id, `${name} ${user_name}`]);
  },
  department: async (client) => listNames((await client.call("GET /api/departments")).value),
  execution: async (client) => {
    const { value } = await client.call("GET /api/executions", { query: ROWS });
    return value.map((
      { id, status, worker_name, instruction },
    ) => [id, `${status} ${worker_name}: ${shorten(instruction)}`]);
  },
  message: async (client) => {
    const { value } = await client.call("GET /api/messages/inbound", { query: ROWS });
    return value.map(({ id, content }) => [id, shorten(content)]);
  },
  task: async (client) => await listTasks(client, TASK_STATUSES),
  open_task: async (client) => await listTasks(client, ["scheduled", "pending"]),
  schedule: async (client) => {
    const query = { status: ACTIVE_TASK_STATUSES.join(","), ...ROWS };
    const { value } = await client.call("GET /api/schedules", { query });
    return value.map(({ id, name, instruction }) => [name || id, shorten(instruction)]);
  },
  session_name: async (client) =>
    (await listSessions(client)).map(({ id, name }) => name === "" ? [id, ""] : [name, id]),
  session_key: listSessionKeys,
  memory_scope: async (client) => [["global", "everywhere"], ...await listSessionKeys(client)],
  memory_key: async (client, words) => {
    const scope = findFlagValue(["--scope"], words);
    if (scope === undefined) return [];
    const { value } = await client.call("GET /api/memory", { query: { scope, ...ROWS } });
    return value.map(({ key, value: text }) => [key, shorten(text)]);
  },
  engine: async (client, words, io) => {
    const { loadConfig } = await load<typeof import("../../src/config/schema.ts")>(
      "../../src/config/schema.ts",
      import.meta.url,
    );
    const { ENGINES_DEFAULT } = await load<typeof import("../../src/config/engine.ts")>(
      "../../src/config/engine.ts",
      import.meta.url,
    );
    const configured = await loadConfig(findFlagValue(["-c", "--config"], words), io.env).then(
      ({ config }) => Object.keys(config.engines).filter((name) => name !== "default"),
      () => [],
    );
    const used = await listWorkers(client).then(
      (all) => all.map(({ engine }) => engine).filter(Boolean),
      () => [],
    );
    return [...new Set([...configured, ...used, ...ENGINES_DEFAULT])].map((name) => [name, ""]);
  },
  scope: () =>
    Promise.resolve(
      VERBS.flatMap((verb) => RESOURCES.map((resource): [string, string] => [`${verb}:${resource}`, ""])),
    ),
  event_kind: () => Promise.resolve(EVENT_KINDS.map((kind) => [kind, ""])),
  secret: async (client) => {
    const { value } = await client.call("GET /api/secrets", { query: ROWS });
    return value.map(({ name, lost }) => [name, lost ? "lost" : ""]);
  },
  platform: () => Promise.resolve([["local", ""]]),
  time_zone: () => Promise.resolve(["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => [zone, ""])),
};

const toName = ({ name }: { name: string }): [string, string] => [name, ""];

async function listWorkers(client: Client) {
  return (await client.call("GET /api/workers", { query: { page_size: 200 } })).value;
}

async function listSessions(client: Client) {
  return (await client.call("GET /api/local/sessions", { query: ROWS })).value;
}

async function listSessionKeys(client: Client): Promise<CompletionValues> {
  return (await listSessions(client)).map(({ id, name }) => [`local:${id}`, name]);
}

// A list of tasks requires a filter, so this request names all workers.
async function listTasks(client: Client, status: readonly string[]): Promise<CompletionValues> {
  const worker_id = (await listWorkers(client)).map(({ id }) => id).join(",");
  if (worker_id === "") return [];
  const query = { worker_id, status: status.join(","), ...ROWS };
  const { value } = await client.call("GET /api/tasks", { query });
  return value.map((task) => [task.id, `${task.status} ${shorten(task.instruction)}`]);
}

interface Named {
  name: string;
  children: Named[];
}

function listNames(trees: readonly Named[]): CompletionValues {
  return trees.flatMap(({ name, children }): CompletionValues => [[name, ""], ...listNames(children)]);
}

/** Returns the value of a flag earlier on the line. */
function findFlagValue(flags: string[], words: string[]): string | undefined {
  for (const [at, word] of words.slice(0, -1).entries()) {
    const [flag = "", inline] = word.split(/=(.*)/s);
    if (flags.includes(flag)) return inline ?? words[at + 1];
  }
  return undefined;
}

function shorten(text: string): string {
  return text.replace(/\s+/g, " ").slice(0, 40);
}
