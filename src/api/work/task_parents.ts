import { invalid } from "../../domain/call/error.ts";
import { isId } from "../../domain/call/field.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import type { TaskCreate, TaskPlan } from "../../domain/work/task.ts";
import { checkAfterDepth, formatStopReason, readBatchReference } from "../../domain/work/task_parent.ts";
import type { Database } from "../../store/db/database.ts";
import { findParents, type NewParent, type Parent } from "../../store/work/task_parent.ts";
import type { Call } from "../call/call.ts";

/** The tasks that a new task waits for. */
export interface ResolvedParents {
  all: Parent[];
  /** Ids of those that have not ended. */
  open: string[];
  /** A failed or cancelled parent, which cancels the task. */
  stopper: Parent | null;
  /** The smallest `depth` of a task of an agent after these, 0 without parents. */
  depth: number;
  after_depth: number;
}

/** Finds the tasks that new tasks name in `after` and that the caller may read. */
export async function findNamedParents(
  db: Database,
  call: Call,
  inputs: readonly Pick<TaskCreate, "after">[],
): Promise<Map<string, Parent>> {
  const ids = [...new Set(inputs.flatMap(({ after = [] }) => after.filter(isId)))];
  return ids.length === 0 ? new Map() : await findParents(db, ids, getBoundSessionKey(call.caller));
}

/**
 * Resolves `after` of a new task. `earlier` are the tasks before it in its batch, which it names as `#1`. Throws `invalid_request` for
 * an unknown task and for a chain that is too long.
 */
export function resolveParents(
  { after = [], after_when = "success" }: Pick<TaskCreate, "after" | "after_when">,
  known: ReadonlyMap<string, Parent>,
  earlier: readonly Parent[] | null,
): ResolvedParents {
  const all = new Map<string, Parent>();
  for (const [index, name] of after.entries()) {
    const parent = resolveParent(name, index, known, earlier);
    all.set(parent.id, parent);
  }
  const parents = [...all.values()];
  const after_depth = Math.max(0, ...parents.map((one) => one.after_depth + 1));
  checkAfterDepth(after_depth);
  const failed = parents.find(({ status }) => status === "failed" || status === "cancelled");
  return {
    all: parents,
    open: parents.filter(({ status }) => status === "").map(({ id }) => id),
    stopper: after_when === "success" ? failed ?? null : null,
    depth: Math.max(0, ...parents.map(({ depth }) => depth + 1)),
    after_depth,
  };
}

function resolveParent(
  name: string,
  index: number,
  known: ReadonlyMap<string, Parent>,
  earlier: readonly Parent[] | null,
): Parent {
  const path = `after.${index}`;
  const position = readBatchReference(name);
  if (position !== null) {
    if (earlier === null) {
      throw invalid(path, `${name} names a task of a batch, and this is no batch; give an id`);
    }
    const parent = earlier[position];
    if (parent !== undefined) return parent;
    throw invalid(path, `${name} is not an earlier task of this batch; the first task is #1`);
  }
  const parent = known.get(name);
  if (parent !== undefined) return parent;
  throw invalid(path, `no task that you may read has the id ${JSON.stringify(name)}`);
}

/** Cancels the plan of a task whose parent has failed or was cancelled. */
export function applyParents<P extends TaskPlan>(plan: P, { stopper }: ResolvedParents): P | TaskPlan {
  if (stopper === null || plan.status !== "pending") return plan;
  const reason = formatStopReason(stopper.id, stopper.status);
  return { ...plan, status: "cancelled", reason, due_at: null };
}

export function listNewParents(taskId: string, { all }: ResolvedParents): NewParent[] {
  return all.map(({ id, status }, position) => ({ taskId, position, id, status }));
}
