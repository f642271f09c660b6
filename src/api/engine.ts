import type { EngineShown } from "../domain/engine.ts";
import { notFound } from "../domain/error.ts";
import { listLimits } from "../store/rate_limit.ts";
import type { Service } from "./service.ts";

/** GET /api/engines: every engine, and whether a run could be started with it (contract 14). */
export async function listEngines(service: Service): Promise<EngineShown[]> {
  const { engines, db, clock } = service;
  const [found, limits] = await Promise.all([engines.probe(), listLimits(db, clock.now())]);
  return engines.names.map((name) => ({
    name,
    kind: engines.find(name)?.kind ?? "",
    default: name === engines.defaultName,
    configured: engines.configured.includes(name),
    usable: found[name]?.usable ?? false,
    version: found[name]?.version ?? "",
    detail: found[name]?.detail ?? "",
    limited_until: limits.find((limit) => limit.engine === name)?.until ?? null,
  }));
}

/** GET /api/engines/:name. Throws `not_found`. */
export async function getEngine(service: Service, name: string): Promise<EngineShown> {
  const found = (await listEngines(service)).find((engine) => engine.name === name);
  if (found === undefined) throw notFound("engine", name);
  return found;
}
