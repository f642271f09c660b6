import { load } from "../../../src/base/load.ts";
import type { Api } from "../../../src/http/app.ts";
import { type AnyCommand, command, type Context, type OptionSpec } from "../command.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { readInputFile } from "../../terminal/input_text.ts";
import type { Io } from "../../terminal/io.ts";
import { confirm } from "../../terminal/prompt.ts";
import { escapeControls } from "../../terminal/visible.ts";

// What the server takes (contract 16).
const FLEET_MAX_BYTES = 16 * 1024 * 1024;
// A file of few bytes must not become one of gigabytes by naming itself again and again.
const ALIASES_MAX = 1_000;
const VALUE_SHOWN_MAX = 60;
type FleetPlan = Api["POST /api/fleet/plan"]["response"];

const SIGNS: Record<FleetPlan["changes"][number]["action"], string> = {
  create: "+",
  update: "~",
  adopt: "~",
  delete: "-",
};

const FILE = {
  flags: "-f, --file <file>",
  about: "the fleet, in YAML or JSON; - reads stdin",
  type: "text",
  required: true,
} as const satisfies OptionSpec;

export const exportCommand: AnyCommand = command({
  name: "export",
  about:
    "Print departments, workers, schedules, budgets, webhooks and shared memory as a file for apply, without secrets",
  options: {},
  examples: ["export > fleet.yaml"],
  async run({ client, out, io }) {
    const { json, value } = await client.call("GET /api/fleet");
    if (out.format === "json") return out.line(json);
    const { yamlText } = await loadYaml();
    const text = yamlText(value);
    out.raw(io.outIsTerminal ? escapeControls(text) : text);
  },
});

export const applyCommand: AnyCommand = command({
  name: "apply",
  about:
    "Make departments, workers, schedules, budgets, webhooks and shared memory as a file says, all or nothing",
  options: {
    file: FILE,
    dryRun: { flags: "--dry-run", about: "say what would change, and change nothing", type: "flag" },
    prune: {
      flags: "--prune",
      about: "delete what an earlier apply made and the file does not name any more",
      type: "flag",
    },
    adopt: { flags: "--adopt", about: "take over what was not made by this fleet's file", type: "flag" },
    plan: {
      flags: "--plan <hash>",
      about: "only if the plan is still the one with this hash, as --dry-run printed it",
      type: "text",
    },
    force: { flags: "--force", about: "delete without asking", type: "flag" },
  },
  examples: ["apply -f fleet.yaml --dry-run", "apply -f fleet.yaml --prune --force"],
  async run(context) {
    const { client, options, io } = context;
    const { prune = false, adopt = false } = options;
    const input = { fleet: await readFleet(io, options.file), prune, adopt };
    const planned = await client.call("POST /api/fleet/plan", { body: input });
    if (options.plan !== undefined && options.plan !== planned.value.hash) {
      throw new Exit(EXIT.conflict, "the plan is another one now; look at it again with --dry-run");
    }
    if (options.dryRun) {
      printPlan(context as unknown as Context, planned.json, planned.value);
      context.note(`plan ${planned.value.hash}`);
      return throwOnConflicts(planned.value);
    }
    throwOnConflicts(planned.value);
    const gone = planned.value.changes.filter(({ action }) => action === "delete");
    if (gone.length > 0 && !options.force && io.inIsTerminal) {
      const names = gone.map(({ kind, name }) => `${kind} ${name}`).join(", ");
      if (!await confirm(io, `This deletes ${names}, and ends their runs. Go on?`)) {
        throw new Exit(EXIT.declined, "nothing was changed");
      }
    }
    const { json, value } = await client.call("POST /api/fleet/apply", {
      body: { ...input, plan: planned.value.hash },
    });
    printPlan(context as unknown as Context, json, value);
  },
});

export const diffCommand: AnyCommand = command({
  name: "diff",
  about: "Say how the service differs from a file; exit code 8 when it does",
  options: { file: FILE },
  examples: ["diff -f fleet.yaml"],
  async run(context) {
    const fleet = await readFleet(context.io, context.options.file);
    const { json, value } = await context.client.call("POST /api/fleet/plan", {
      body: { fleet, prune: true, adopt: true },
    });
    throwOnConflicts(value);
    // Contents are compared, whoever manages them.
    const changes = value.changes.filter(({ action }) => action !== "adopt");
    printPlan(context as unknown as Context, json, { ...value, changes });
    if (changes.length > 0) throw new Exit(EXIT.awaitedFailed, "");
  },
});

async function readFleet(io: Io, file: string): Promise<Record<string, unknown>> {
  const text = await readInputFile(io, file, { flag: "--file", maxBytes: FLEET_MAX_BYTES });
  const { parseYaml } = await loadYaml();
  let value: unknown;
  try {
    value = parseYaml(text).document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    throw usageError(`${file}:${error instanceof Error ? error.message : String(error)}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw usageError(`${file}: must hold departments, workers or memory`);
  }
  return value as Record<string, unknown>;
}

// The library is loaded by these commands only.
function loadYaml() {
  return load<typeof import("../../../src/config/yaml.ts")>("../../../src/config/yaml.ts", import.meta.url);
}

// What agents wrote stands in it, such as the memory of every conversation.
function printPlan({ out, io }: Context, json: string, { changes }: FleetPlan): void {
  if (out.format === "json") return out.line(json);
  const line = (text: string) => out.line(io.outIsTerminal ? escapeControls(text) : text);
  for (const { action, kind, name, fields } of changes) {
    const sign = SIGNS[action];
    line(`${sign} ${kind} ${name}${action === "adopt" ? " (managed by this fleet from now on)" : ""}`);
    if (action !== "update") continue;
    for (const field of fields) {
      line(`    ${field.name}: ${formatValue(field.before)} -> ${formatValue(field.after)}`);
    }
  }
}

function formatValue(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > VALUE_SHOWN_MAX ? `${text.slice(0, VALUE_SHOWN_MAX - 1)}…` : text;
}

function throwOnConflicts({ conflicts }: FleetPlan): void {
  if (conflicts.length === 0) return;
  const words = conflicts.map(({ kind, name, detail }) => `${kind} ${name}: ${detail}`).join("\n  ");
  throw new Exit(EXIT.conflict, `nothing was changed:\n  ${words}`);
}
