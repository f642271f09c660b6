import { load } from "../../../src/base/lazy_import.ts";
import type { Api } from "../../../src/http/app.ts";
import { EXIT, Exit, formatReason, usageError } from "../../terminal/exit.ts";
import { readInputFile } from "../../terminal/input_text.ts";
import type { Io } from "../../terminal/io.ts";
import { confirm } from "../../terminal/prompt.ts";
import { escapeControls } from "../../terminal/visible.ts";
import { type AnyCommand, type BaseContext, command, option } from "../command.ts";

// The limit of the server (contract 16).
const FLEET_MAX_BYTES = 16 * 1024 * 1024;
// Without this limit a few bytes of nested aliases become gigabytes.
const ALIASES_MAX = 1_000;
const VALUE_SHOWN_MAX = 60;
type FleetPlan = Api["POST /api/fleet/plan"]["response"];

const SIGNS: Record<FleetPlan["changes"][number]["action"], string> = {
  create: "+",
  update: "~",
  adopt: "~",
  delete: "-",
};

const FILE = option.text("-f, --file <file>", "fleet file in YAML or JSON; - reads stdin", {
  required: true,
});

export const groups: Record<string, AnyCommand> = {
  export: command({
    name: "export",
    about: "Print the fleet as a file for apply, without secrets",
    examples: ["export > fleet.yaml"],
    async run({ client, out, io }) {
      const { json, value } = await client.call("GET /api/fleet");
      if (out.format === "json") return out.line(json);
      const { formatYaml } = await loadYaml();
      const text = formatYaml(value);
      out.raw(io.outIsTerminal ? escapeControls(text) : text);
    },
  }),
  apply: command({
    name: "apply",
    about: "Change the fleet to match a file, all or nothing",
    options: {
      file: FILE,
      dryRun: option.flag("--dry-run", "print the changes without applying them"),
      prune: option.flag("--prune", "delete objects of an earlier apply that the file no longer has"),
      adopt: option.flag("--adopt", "also manage existing objects that the file names"),
      plan: option.text("--plan <hash>", "apply only if the plan has this hash, as printed by --dry-run"),
      force: option.flag("--force", "delete without confirmation"),
    },
    examples: ["apply -f fleet.yaml --dry-run", "apply -f fleet.yaml --prune --force"],
    async run(context) {
      const { client, options, io, note } = context;
      const { prune = false, adopt = false } = options;
      const input = { fleet: await readFleet(io, options.file), prune, adopt };
      const { json: planJson, value: plan } = await client.call("POST /api/fleet/plan", { body: input });
      if (options.plan !== undefined && options.plan !== plan.hash) {
        throw new Exit(EXIT.conflict, "Cannot apply the plan: it has changed. Check it with --dry-run.");
      }
      if (options.dryRun) {
        printPlan(context, planJson, plan);
        note(`plan ${plan.hash}`);
        return throwOnConflicts(plan);
      }
      throwOnConflicts(plan);
      const deleted = plan.changes.filter(({ action }) => action === "delete");
      if (deleted.length > 0 && !options.force && io.inIsTerminal) {
        const names = deleted.map(({ kind, name }) => `${kind} ${name}`).join(", ");
        if (!await confirm(io, `This deletes ${names} and ends their runs. Continue?`)) {
          throw new Exit(EXIT.declined, "Canceled. Changed nothing.");
        }
      }
      const body = { ...input, plan: plan.hash };
      const { json, value } = await client.call("POST /api/fleet/apply", { body });
      printPlan(context, json, value);
    },
  }),
  diff: command({
    name: "diff",
    about: "Show how the fleet differs from a file (exit code 8 if it does)",
    options: { file: FILE },
    examples: ["diff -f fleet.yaml"],
    async run(context) {
      const fleet = await readFleet(context.io, context.options.file);
      const { json, value } = await context.client.call("POST /api/fleet/plan", {
        body: { fleet, prune: true, adopt: true },
      });
      throwOnConflicts(value);
      // A diff compares contents, not who manages them.
      const changes = value.changes.filter(({ action }) => action !== "adopt");
      printPlan(context, json, { ...value, changes });
      if (changes.length > 0) throw new Exit(EXIT.awaitedFailed, "");
    },
  }),
};

async function readFleet(io: Io, file: string): Promise<Record<string, unknown>> {
  const text = await readInputFile(io, file, { flag: "--file", maxBytes: FLEET_MAX_BYTES });
  const { parseYaml } = await loadYaml();
  let value: unknown;
  try {
    value = parseYaml(text).document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    throw usageError(`${file}:${formatReason(error)}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw usageError(`${file}: must have departments, workers or memory`);
  }
  return value as Record<string, unknown>;
}

// Imported lazily, so that only these commands load the YAML library.
function loadYaml() {
  return load<typeof import("../../../src/config/yaml.ts")>("../../../src/config/yaml.ts", import.meta.url);
}

// A plan has texts of agents, such as the memory of every conversation.
function printPlan({ out, io }: BaseContext, json: string, { changes }: Pick<FleetPlan, "changes">): void {
  if (out.format === "json") return out.line(json);
  const print = (text: string) => out.line(io.outIsTerminal ? escapeControls(text) : text);
  for (const { action, kind, name, fields } of changes) {
    print(`${SIGNS[action]} ${kind} ${name}${action === "adopt" ? " (now managed by this fleet)" : ""}`);
    if (action !== "update") continue;
    for (const { name, before, after } of fields) {
      print(`    ${name}: ${formatValue(before)} -> ${formatValue(after)}`);
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
  throw new Exit(EXIT.conflict, `Cannot apply the file. Changed nothing:\n  ${words}`);
}
