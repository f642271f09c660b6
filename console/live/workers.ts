import { signal } from "@preact/signals";
import { api, askPage, type Worker } from "./api.ts";
import { onEvent, onReset } from "./events.ts";

/** Every worker, newest first, or undefined before the first answer: names for lists, choices and mentions. */
export const workers = signal<readonly Worker[] | undefined>(undefined);

const PAGE_SIZE = 200;
// More than a choice can show; beyond this names come with the rows that need them.
const WORKERS_MAX = 2_000;
const GATHER_MS = 150;

/** Keeps `workers` as it is on the service. */
export function followWorkers(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = () => timer ??= setTimeout(() => (timer = undefined, void read()), GATHER_MS);
  onEvent(({ kind }) =>
    (/^worker\.|^department\.|^execution\.(started|completed|failed)$/).test(kind) && soon()
  );
  onReset(soon);
  void read();
}

/** The name of a worker, or "" when it is not known (any more). */
export function workerName(id: string): string {
  return workers.value?.find((worker) => worker.id === id)?.name ?? "";
}

async function read(): Promise<void> {
  const found: Worker[] = [];
  let cursor: string | null = null;
  try {
    do {
      const query: { page_size: number; cursor?: string } = { page_size: PAGE_SIZE };
      if (cursor !== null) query.cursor = cursor;
      const page = await askPage(api.GET("/api/workers", { params: { query } }));
      found.push(...page.items);
      cursor = page.next;
    } while (cursor !== null && found.length < WORKERS_MAX);
    workers.value = found;
  } catch {
    // Read again with the next event.
  }
}
