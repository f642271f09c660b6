import type { AgentSetup } from "./launch.ts";
import { SpawnError } from "./process/process.ts";
import type { Order } from "./protocol/adapter.ts";

const SETTINGS_MAX_BYTES = 1024 * 1024;

/** Throws SpawnError if settings that an agent can write would let its tool calls through without a question (contract 23). */
export function refuseForeignSettings({ adapter }: AgentSetup, order: Order): void {
  if (order.permissions !== "ask") return;
  for (const { path, isHarmless } of adapter.listForeignSettings?.(order) ?? []) {
    let found: Deno.FileInfo;
    try {
      found = Deno.lstatSync(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      throw error;
    }
    const isEmpty = found.isDirectory && [...Deno.readDirSync(path)].length === 0;
    const isRead = found.isFile && isHarmless !== undefined && found.size <= SETTINGS_MAX_BYTES;
    if (isEmpty || isRead && isHarmless(Deno.readTextFileSync(path))) continue;
    throw new SpawnError(
      `with permissions: ask, ${path} must not let tool calls through. Remove it.`,
      "setup",
    );
  }
}
