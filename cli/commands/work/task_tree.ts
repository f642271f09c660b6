import type { Api } from "../../../src/http/app.ts";
import type { Row } from "../../terminal/column.ts";

type Task = Api["GET /api/tasks"]["response"][number];

/** Orders tasks so that each follows the first listed task that it waits for. `tree` has its indentation. */
export function orderAsTree(tasks: readonly Task[]): Row[] {
  const listed = new Set(tasks.map(({ id }) => id));
  const children = new Map<string, Task[]>();
  const findParent = ({ after }: Task) => after.find((id) => listed.has(id)) ?? "";
  // Lists have the newest task first, but a task comes after the one that it waits for.
  for (const task of tasks.toReversed()) {
    const parent = findParent(task);
    children.set(parent, [...children.get(parent) ?? [], task]);
  }
  const rows: Row[] = [];
  const left = (children.get("") ?? []).map((task) => ({ task, depth: 0 })).toReversed();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { task, depth } = next;
    rows.push({ ...task, tree: depth === 0 ? "" : `${"  ".repeat(depth - 1)}└ ` });
    const below = children.get(task.id) ?? [];
    left.push(...below.toReversed().map((one) => ({ task: one, depth: depth + 1 })));
  }
  return rows;
}

/** Formats the instruction of a row, indented in a tree. */
export function formatTreeLine({ tree = "", instruction }: Row): string {
  return `${tree}${instruction}`;
}
