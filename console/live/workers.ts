import { signal } from "@preact/signals";
import { api, buildQuery, loadAll, type Schemas } from "./api.ts";
import { followEvents } from "./follow.ts";

/** Every worker, newest first, for lists, choices and mentions. Undefined until the service has answered. */
export const workers = signal<readonly Schemas["Worker"][] | undefined>(undefined);

// A longer list of choices is not usable. Rows of further workers show no name.
const WORKERS_MAX = 2_000;
const GATHER_MS = 150;
const TOUCHES = /^worker\.|^department\.|^execution\.(started|completed|failed)$/;

export function followWorkers(): void {
  followEvents(TOUCHES, GATHER_MS, read);
}

/** Returns the name of a worker, or "" if it is unknown. */
export function findWorkerName(id: string): string {
  return workers.value?.find((worker) => worker.id === id)?.name ?? "";
}

/** Lists the workers as options of a choice, after the given options. */
export function listWorkerOptions(...first: [value: string, text: string][]): [string, string][] {
  return [...first, ...(workers.value ?? []).map(({ id, name }): [string, string] => [id, name])];
}

async function read(): Promise<void> {
  workers.value = await loadAll(
    (cursor) => api.GET("/api/workers", { params: { query: buildQuery({}, cursor) } }),
    WORKERS_MAX,
  );
}
