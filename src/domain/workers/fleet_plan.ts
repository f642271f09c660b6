import type { FleetChange, FleetObject, FleetPlan, PresentObject } from "./fleet.ts";
import { normalizeName } from "../call/name_key.ts";
import type { FleetKind } from "../call/vocabulary.ts";

interface PlanOptions {
  fleet: string;
  prune: boolean;
  adopt: boolean;
}

/** A change with the objects before and after it. `present` is null for a new object, `wanted` for a deleted one. */
export interface PlannedChange extends FleetChange {
  present: PresentObject | null;
  wanted: FleetObject | null;
}

/** A plan without its hash. */
export interface UnhashedPlan extends Omit<FleetPlan, "hash" | "changes"> {
  changes: PlannedChange[];
}

/**
 * Compares a fleet with the existing objects and plans the changes (contract 16). An ambiguous name is a conflict, and so is
 * one that this fleet does not manage, unless `adopt` is set. `prune` deletes objects that this fleet manages but no longer
 * wants.
 */
export function planFleet(
  wanted: readonly FleetObject[],
  present: readonly PresentObject[],
  { fleet, prune, adopt }: PlanOptions,
): UnhashedPlan {
  const changes: PlannedChange[] = [];
  const conflicts: UnhashedPlan["conflicts"] = [];
  const presentByKey = Map.groupBy(present, buildKey);
  const named = new Set(wanted.map(buildKey));
  for (const one of wanted) {
    const [found, second] = presentByKey.get(buildKey(one)) ?? [];
    const { kind, name } = one;
    if (found === undefined) {
      changes.push({
        action: "create",
        kind,
        name,
        fields: findDifferences({}, one.fields),
        present: null,
        wanted: one,
      });
      continue;
    }
    if (second !== undefined) {
      conflicts.push({ kind, name, detail: "several objects have this name; rename all but one" });
      continue;
    }
    if (found.managedBy !== fleet && !adopt) {
      const owner = found.managedBy === null
        ? "no file manages it"
        : `the fleet ${found.managedBy} manages it`;
      conflicts.push({ kind, name, detail: `${owner}; take it over with adopt` });
      continue;
    }
    const before = { ...found.fields, ...(found.name === name ? {} : { name: found.name }) };
    const after = { ...one.fields, ...(found.name === name ? {} : { name }) };
    const fields = findDifferences(before, after);
    if (fields.length > 0) {
      changes.push({ action: "update", kind, name, fields, present: found, wanted: one });
    } else if (found.managedBy !== fleet) {
      changes.push({ action: "adopt", kind, name, fields: [], present: found, wanted: one });
    }
  }
  for (const found of prune ? present : []) {
    if (found.managedBy !== fleet || named.has(buildKey(found))) continue;
    const { kind, name } = found;
    changes.push({ action: "delete", kind, name, fields: [], present: found, wanted: null });
  }
  return { changes, conflicts };
}

/** Returns the names of departments in a cycle, or null. `parents` maps each department's key to the key of its parent. */
export function findCycle(parents: ReadonlyMap<string, string>): string[] | null {
  const safe = new Set<string>();
  for (const start of parents.keys()) {
    const path: string[] = [];
    for (let at: string | undefined = start; at !== undefined && !safe.has(at); at = parents.get(at)) {
      if (path.includes(at)) return [...path.slice(path.indexOf(at)), at];
      path.push(at);
    }
    for (const one of path) safe.add(one);
  }
  return null;
}

function buildKey({ kind, name }: { kind: FleetKind; name: string }): string {
  // Memory keys differ by case, names do not.
  return `${kind} ${kind === "memory" ? name : normalizeName(name)}`;
}

function findDifferences(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): FleetChange["fields"] {
  return Object.keys(after).flatMap((name) =>
    JSON.stringify(before[name]) === JSON.stringify(after[name])
      ? []
      : [{ name, before: before[name] ?? null, after: after[name] }]
  );
}
