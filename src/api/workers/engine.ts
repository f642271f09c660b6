import type { EngineView } from "../../domain/workers/engine.ts";
import { invalid, notFound } from "../../domain/call/error.ts";
import { deleteWindows, listWindows } from "../../store/workers/engine_window.ts";
import { record } from "../../store/events/journal.ts";
import { deleteLimit, listLimits } from "../../store/workers/rate_limit.ts";
import { type Answer, answer, answerList } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import type { WorkerUpdate } from "../../domain/workers/worker.ts";
import { findAskFault, findReservedFlag } from "../../engine/kinds.ts";
import { splitArgs } from "../../engine/arguments.ts";
import { findBoxFault } from "../../engine/process/box_fault.ts";
import type { Catalog } from "../../engine/catalog.ts";

type EngineDeps = Deps<"engines" | "db" | "clock" | "isolation">;

/** Lists all engines and whether each can start a run. */
export async function listEngines(deps: EngineDeps): Promise<Answer<EngineView[]>> {
  return answerList(await probe(deps));
}

export async function getEngine(deps: EngineDeps, name: string): Promise<Answer<EngineView>> {
  const found = (await probe(deps)).find((engine) => engine.name === name);
  if (found === undefined) throw notFound("engine", name);
  return answer(found);
}

/** Ends an engine's cooldown and forgets the reported usage windows. Throws `not_found`. */
export async function liftEngine(
  deps: EngineDeps,
  { caller }: Call,
  name: string,
): Promise<Answer<EngineView>> {
  const { db, clock, engines } = deps;
  if (!engines.names.includes(name)) throw notFound("engine", name);
  await db.write([
    deleteLimit(name),
    deleteWindows(name),
    record(clock.now(), { kind: "engine.lifted", actor: caller.subject, data: { engine: name } }),
  ]);
  return await getEngine(deps, name);
}

async function probe({ engines, db, clock, isolation: { config } }: EngineDeps): Promise<EngineView[]> {
  const [found, boxFault, limits, windows] = await Promise.all([
    engines.probe(),
    config.default === "box" ? findBoxFault(config) : null,
    listLimits(db, clock.now()),
    listWindows(db),
  ]);
  return engines.names.map((name) => ({
    name,
    kind: engines.find(name)?.kind ?? "",
    default: name === engines.defaultName,
    gateway: engines.find(name)?.config.gateway ?? "",
    configured: engines.configured.includes(name),
    usable: (found[name]?.usable ?? false) && !(boxFault !== null && engines.find(name)?.external),
    version: found[name]?.version ?? "",
    detail: boxFault !== null && engines.find(name)?.external
      ? `no box can be set up: ${boxFault}`
      : found[name]?.detail ?? "",
    live_usage: engines.find(name)?.reportsLiveUsage ?? false,
    stays_open: engines.find(name)?.idleMax ?? 0,
    steers: engines.find(name)?.steers ?? false,
    fallback: engines.find(name)?.config.fallback ?? [],
    permissions: engines.find(name)?.config.permissions ?? "edit",
    windows: windows.filter(({ engine }) => engine === name).map(({ engine: _engine, ...window }) => window),
    limited_until: limits.find((limit) => limit.engine === name)?.until ?? null,
  }));
}

const FIELDS_OF_PROCESSES = "engine engine_args env gateways isolation mcp paused runs_on scopes skills"
  .split(" ");

/** Ends a worker's idle processes after a change of what they got when they started, or of whether the worker runs. */
export async function endOutdatedProcesses(engines: Catalog, id: string, change: object): Promise<void> {
  if (FIELDS_OF_PROCESSES.some((name) => name in change)) await engines.release(id);
}

/** Throws `invalid_request` for an unknown engine and for malformed or reserved arguments. */
export function checkEngines(
  engines: Catalog,
  input: Pick<WorkerUpdate, "engine" | "engine_args" | "runs_on">,
  prefix = "",
): void {
  const known = engines.names;
  // Runners may have engines that this machine does not have.
  const isElsewhere = (input.runs_on ?? []).length > 0;
  if (input.engine !== undefined && engines.find(input.engine) === null && !isElsewhere) {
    throw invalid(
      `${prefix}engine`,
      `no engine is called ${JSON.stringify(input.engine)}. Known engines: ${known.join(", ")}.`,
    );
  }
  for (const [name, text] of Object.entries(input.engine_args ?? {})) {
    const path = `${prefix}engine_args.${name}`;
    if (!known.includes(name) && !isElsewhere) {
      throw invalid(path, `no engine has this name. Known engines: ${known.join(", ")}.`);
    }
    const args = parseArgs(path, text);
    const engine = engines.find(name);
    const fault = engine?.config.permissions === "ask" ? findAskFault(engine.kind, args) : null;
    if (fault !== null) throw invalid(path, fault);
    const flag = findReservedFlag(engines.find(name)?.kind ?? "", args);
    if (flag !== null) throw invalid(path, `cannot contain ${flag}: the service sets it`);
  }
}

function parseArgs(path: string, text: string): string[] {
  try {
    return splitArgs(text);
  } catch (error) {
    throw invalid(path, error instanceof Error ? error.message : String(error));
  }
}
