import { api, load, type Schemas } from "../../live/api.ts";
import { type Resource, useResource } from "../../live/resource.ts";

type Tree = Schemas["DepartmentTree"];

export interface Department {
  id: string;
  name: string;
  depth: number;
  parentId: string | null;
  workers: number;
}

/** Every department, in the order of the tree. */
export function useDepartments(): Resource<Department[]> {
  return useResource(
    "departments",
    async (signal) => flatten(await load(api.GET("/api/departments", { signal }))),
    /^department\.|^worker\.(updated|created)$/,
  );
}

export function useDepartmentNames(): Map<string, string> {
  return new Map((useDepartments().data ?? []).map(({ id, name }) => [id, name]));
}

/** Lists departments as options of a choice, indented by their depth. */
export function listDepartmentOptions(departments: readonly Department[]): [string, string][] {
  return departments.map(({ id, name, depth }) => [id, `${"\u2003".repeat(depth)}${name}`]);
}

function flatten(trees: readonly Tree[], depth = 0): Department[] {
  return trees.flatMap((tree) => [
    { id: tree.id, name: tree.name, depth, parentId: tree.parent_id, workers: tree.worker_count },
    ...flatten(tree.children, depth + 1),
  ]);
}

/** Returns the ids of a department and of all departments that contain it. */
export function listAncestors(departments: readonly Department[], id: string): string[] {
  const parents = new Map(departments.map((one) => [one.id, one.parentId]));
  const found: string[] = [];
  for (let at: string | null | undefined = id; at && !found.includes(at); at = parents.get(at)) {
    found.push(at);
  }
  return found;
}

/** Returns the ids of a department and of all departments inside of it. */
export function listDescendants(departments: readonly Department[], id: string): Set<string> {
  const start = departments.findIndex((one) => one.id === id);
  const found = new Set([id]);
  const depth = departments[start]?.depth ?? 0;
  for (const one of departments.slice(start + 1)) {
    if (start < 0 || one.depth <= depth) break;
    found.add(one.id);
  }
  return found;
}
