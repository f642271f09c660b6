import type { EngineShown } from "../domain/engine.ts";
import { notFound } from "../domain/error.ts";
import { listLimits } from "../store/rate_limit.ts";
import { type Answer, answer } from "./answer.ts";
import type { Needs } from "./parts.ts";

type EngineNeeds = Needs<"engines" | "db" | "clock">;

/** GET /api/engines: every engine, and whether a run could be started with it (contract 14). */
export async function listEngines(needs: EngineNeeds): Promise<Answer<EngineShown[]>> {
  return answer(await probe(needs));
}

/** GET /api/engines/:name. Throws `not_found`. */
export async function getEngine(needs: EngineNeeds, name: string): Promise<Answer<EngineShown>> {
  const found = (await probe(needs)).find((engine) => engine.name === name);
  if (found === undefined) throw notFound("engine", name);
  return answer(found);
}

async function probe({ engines, db, clock }: EngineNeeds): Promise<EngineShown[]> {
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
