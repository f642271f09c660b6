import { resolve } from "node:path";
import { countBytes } from "../../../src/base/bytes.ts";
import { load } from "../../../src/base/lazy_import.ts";
import { usageError } from "../../terminal/exit.ts";
import { escapeControls } from "../../terminal/visible.ts";
import { type AnyCommand, command, type Context, option } from "../command.ts";
import { SourceDir } from "./files.ts";
import { FLEET_MAX_BYTES, type Imported, toLine } from "./imported.ts";

const options = {
  dryRun: option.flag(
    "--dry-run",
    "print what the file would have, without the file and without setting secrets",
  ),
  withSecrets: option.flag("--with-secrets", "set the secrets of the directory in the service"),
};

export const group: AnyCommand[] = [
  command({
    name: "openclaw",
    about: "Print the agents of an OpenClaw directory as a fleet file",
    args: ["dir"],
    options,
    examples: ["import openclaw ~/.openclaw > fleet.yaml", "import openclaw ~/.openclaw --dry-run"],
    async run(context) {
      const { readOpenClaw } = await load<typeof import("./openclaw.ts")>("./openclaw.ts", import.meta.url);
      await printImport(context, "openclaw", readOpenClaw);
    },
  }),
  command({
    name: "hermes",
    about: "Print the agents of a Hermes directory as a fleet file",
    args: ["dir"],
    options,
    examples: ["import hermes ~/.hermes > fleet.yaml", "import hermes ~/.hermes --dry-run"],
    async run(context) {
      const { readHermes } = await load<typeof import("./hermes.ts")>("./hermes.ts", import.meta.url);
      await printImport(context, "hermes", readHermes);
    },
  }),
];

async function printImport(
  context: Context<typeof options>,
  source: string,
  read: (dir: SourceDir) => Promise<Imported>,
): Promise<void> {
  const { client, io, out, args: [path = ""], options: { dryRun = false, withSecrets = false } } = context;
  const dir = await SourceDir.open(resolve(io.cwd, path));
  const imported = await read(dir);
  const { formatYaml } = await load<typeof import("../../../src/config/yaml.ts")>(
    "../../../src/config/yaml.ts",
    import.meta.url,
  );
  const fleet = buildFleet(imported, source);
  const text = out.format === "json" ? `${JSON.stringify(fleet)}\n` : formatYaml(fleet, { literal: true });
  if (countBytes(text) > FLEET_MAX_BYTES) {
    throw usageError(
      `Cannot import ${dir.path}: the fleet file would be larger than ${FLEET_MAX_BYTES} bytes`,
    );
  }
  const known = [...imported.secrets].flatMap(([name, value]) => value === null ? [] : [{ name, value }]);
  if (dryRun) {
    const lines = [
      ...imported.workers.map(({ name }) => `+ worker ${imported.mask(name)}`),
      ...imported.schedules.map(({ name }) => `+ schedule ${imported.mask(name)}`),
      ...(withSecrets ? known.map(({ name }) => `+ secret ${name}`) : []),
    ];
    for (const line of lines) out.line(io.outIsTerminal ? escapeControls(line) : line);
  } else {
    for (const { name, value } of withSecrets ? known : []) {
      await client.call("PUT /api/secrets/:name", { params: { name }, body: { value } });
    }
    out.raw(io.outIsTerminal ? escapeControls(text) : text);
  }
  printNotes(context, imported, { unset: withSecrets ? null : known.map(({ name }) => name), formatYaml });
}

function buildFleet(imported: Imported, source: string) {
  const workers = imported.workers.map(({ name, memory, mcp }) => ({
    name,
    ...(memory === "" ? {} : { memory }),
    ...(Object.keys(mcp).length === 0 ? {} : { mcp }),
  }));
  const { schedules } = imported;
  return imported.maskAll({ fleet: source, workers, ...(schedules.length === 0 ? {} : { schedules }) });
}

/** Prints the lines for the configuration, the secrets to set, and what has no equal. */
function printNotes(
  { note }: Context<typeof options>,
  imported: Imported,
  { unset, formatYaml }: { unset: readonly string[] | null; formatYaml: (value: unknown) => string },
): void {
  const print = (line: string) => note(escapeControls(line));
  if (Object.keys(imported.platforms).length > 0) {
    print("For the configuration of the service (config.yaml):");
    for (
      const line of formatYaml(imported.maskAll({ platforms: imported.platforms })).trimEnd().split("\n")
    ) {
      print(`  ${line}`);
    }
  }
  const missing = [...imported.secrets].filter(([name, value]) => value === null || unset?.includes(name));
  if (missing.length > 0) {
    print("Set these secrets before svc ctl apply:");
    for (const [name] of missing) print(`  svc ctl secret set ${name}`);
  }
  if (imported.leftOut.length > 0) print("Not imported:");
  for (const line of imported.leftOut) print(`  ${toLine(imported.mask(line))}`);
}
