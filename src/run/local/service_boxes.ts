import { type IsolationConfig, resolveBox } from "../../domain/workers/isolation.ts";
import { listParts } from "../../store/chat/inbound_part.ts";
import type { Database } from "../../store/db/database.ts";
import { findIsolation, listForeignWorkDirs } from "../../store/workers/worker.ts";
import { type BoxMachine, type BoxPlanner, createBoxPlanner } from "../box.ts";

/** Creates the planner of the service, which reads the settings of workers. */
export function createServicePlanner(
  machine: BoxMachine,
  { db, config }: { db: Database; config: IsolationConfig },
): BoxPlanner {
  return createBoxPlanner(machine, async ({ workerId: id, messageId }) => {
    const box = resolveBox(id === null ? null : await findIsolation(db, id), config);
    if (box === null) return null;
    const others = id === null ? [] : await listForeignWorkDirs(db, id, machine.paths.workers);
    return { box, config, others, read: await listMessageFiles(db, messageId) };
  });
}

async function listMessageFiles(db: Database, messageId: string): Promise<string[]> {
  const parts = messageId === "" ? [] : await listParts(db, messageId);
  return parts.flatMap(({ media }) => media === null ? [] : [media.path]);
}
