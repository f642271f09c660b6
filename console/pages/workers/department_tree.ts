import { api, ask, type Schemas } from "../../live/api.ts";
import { type Resource, useResource } from "../../live/resource.ts";

/** A department with what is below it. */
export type Tree = Schemas["DepartmentTree"];

/** A department with its depth in the tree. */
export interface Place {
  id: string;
  name: string;
  depth: number;
  parentId: string | null;
  workers: number;
}

/** The tree of departments. */
export function useDepartments(): Resource<Tree[]> {
  return useResource(
    "departments",
    (signal) => ask(api.GET("/api/departments", { signal })),
    ({ kind }) => kind.startsWith("department.") || kind === "worker.updated" || kind === "worker.created",
  );
}

/** Every department in the order in which a tree is read. */
export function flat(trees: readonly Tree[], depth = 0): Place[] {
  return trees.flatMap((tree) => [
    { id: tree.id, name: tree.name, depth, parentId: tree.parent_id, workers: tree.worker_count },
    ...flat(tree.children, depth + 1),
  ]);
}

/** The ids of a department and of everything that it is in. */
export function above(trees: readonly Tree[], id: string): string[] {
  const parents = new Map(flat(trees).map((place) => [place.id, place.parentId]));
  const found: string[] = [];
  for (let at: string | null | undefined = id; at && !found.includes(at); at = parents.get(at)) {
    found.push(at);
  }
  return found;
}

/** The ids of a department and of everything below it. */
export function below(trees: readonly Tree[], id: string): Set<string> {
  const all = flat(trees);
  const start = all.findIndex((place) => place.id === id);
  const found = new Set([id]);
  const depth = all[start]?.depth ?? 0;
  for (const place of all.slice(start + 1)) {
    if (start < 0 || place.depth <= depth) break;
    found.add(place.id);
  }
  return found;
}
