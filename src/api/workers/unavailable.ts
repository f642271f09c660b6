import { getStateDir } from "../../base/paths.ts";
import { formatJson, type Json, parseJson } from "../../domain/call/json.ts";
import { findIdleScopes } from "../../domain/call/scope.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Answer } from "../call/answer.ts";
import type { Deps } from "../call/services.ts";
import { hasUsableFallback } from "./fallback.ts";

// Quotes in JSON values are escaped, so a match is always a member.
const ENGINES = /"engine":"([^"]*)"/g;
function findEngines(json: string): string[] {
  return [...new Set([...json.matchAll(ENGINES)].map(([, name = ""]) => name))];
}

/**
 * Replaces `idle` with `unavailable` for workers whose engine cannot be started. Looks again at engines that the latest check or run could
 * not start, once per engine of a list, and at no others (contract-3 20.4). Parses the JSON only if there is such a worker.
 */
export async function markUnavailable<T extends Worker | Worker[]>(
  { engines, paths }: Deps<"engines" | "paths">,
  json: Json<T>,
): Promise<Json<T>> {
  if (!findEngines(json).some((name) => engines.isDoubtful(name))) return json;
  const value = parseJson<Worker | Worker[]>(json);
  const checked = new Map<string, Promise<{ usable: boolean }>>();
  for (const worker of [value].flat()) {
    const { id, engine } = worker;
    const findStateDir = (one: Engine) => getStateDir(paths, id, one);
    // Runners report their own engines.
    if (
      worker.runs_on.length > 0 || worker.status !== "idle" || !engines.isKnownUnusable(engine, findStateDir)
    ) {
      continue;
    }
    if (!checked.has(engine)) checked.set(engine, engines.probeOne(engine, findStateDir));
    const { usable = false } = await checked.get(engine) ?? {};
    if (!usable && !hasUsableFallback({ engines, paths }, worker)) worker.status = "unavailable";
  }
  return formatJson(value) as Json<T>;
}

/** Returns the warning of an answer: ineffective scopes and unusable engines are probably mistakes, but the worker is stored. */
export async function findWarning(
  { engines, paths }: Deps<"engines" | "paths">,
  { json }: Answer<Worker>,
  scopes: readonly string[] = [],
): Promise<{ warning?: string }> {
  const idle = findIdleScopes(scopes);
  const { id, engine, runs_on } = parseJson(json);
  // Runners report their own engines.
  const found = runs_on.length > 0
    ? { usable: true, detail: "" }
    : await engines.probeOne(engine, (one) => getStateDir(paths, id, one));
  const words = [
    ...(idle.length === 0 ? [] : [`no route needs ${idle.join(", ")}, so it has no effect`]),
    ...(found.usable ? [] : [`engine ${engine || engines.defaultName} cannot be used: ${found.detail}`]),
  ];
  // The header allows only visible ASCII, and the text is in quotes.
  return words.length === 0
    ? {}
    : { warning: words.join("; ").replace(/[^\x20-\x7e]/g, "?").replaceAll('"', "'") };
}
