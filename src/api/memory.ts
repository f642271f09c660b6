import { conflict, notFound, ServiceError } from "../domain/error.ts";
import { byteLength } from "../domain/field.ts";
import { GLOBAL_SCOPE, MEMORY_ENTRIES_MAX, type MemoryEntry, type MemorySave } from "../domain/memory.ts";
import type { Listing, Page } from "../domain/page.ts";
import { boundTo } from "../domain/scope.ts";
import { record } from "../store/journal.ts";
import {
  deleteMemory as deleteMemoryRow,
  findMemory,
  listMemory as listMemoryRows,
  saveMemory as saveMemoryRow,
} from "../store/memory.ts";
import type { Call, Service } from "./service.ts";

/** GET /api/memory: the entries of a scope by key (interface 4.2, memory get). Throws `not_found` for a foreign scope. */
export async function listMemory(service: Service, call: Call, scope: string, page: Page): Promise<Listing> {
  checkReadable(call, scope);
  return await listMemoryRows(service.db, scope, page);
}

/** GET /api/memory/entry. Throws `not_found`. */
export async function getMemory(
  service: Service,
  call: Call,
  scope: string,
  key: string,
): Promise<MemoryEntry> {
  checkReadable(call, scope);
  const entry = await findMemory(service.db, scope, key);
  if (entry === null) throw notFound("memory entry", key);
  return entry;
}

/** PUT /api/memory/entry: saves or replaces (interface 4.2, memory save). Throws `forbidden`, `not_found`, `conflict` when the scope is full. */
export async function saveMemory(service: Service, call: Call, input: MemorySave): Promise<MemoryEntry> {
  checkWritable(call, input.scope);
  await service.runLimits.take(
    service,
    call,
    "memory_bytes",
    byteLength(input.key) + byteLength(input.value),
  );
  const now = service.clock.now();
  const entry = { ...input, updated_at: now };
  await service.db.writeOr(
    [...saveMemoryRow(entry, MEMORY_ENTRIES_MAX), event("memory.saved", call, input, now)],
    () =>
      conflict(
        `Cannot save ${
          JSON.stringify(input.key)
        }: the scope has ${MEMORY_ENTRIES_MAX} entries; delete some first`,
      ),
  );
  return entry;
}

/** DELETE /api/memory/entry. Throws `forbidden`, `not_found`. */
export async function deleteMemory(service: Service, call: Call, scope: string, key: string): Promise<void> {
  checkWritable(call, scope);
  const now = service.clock.now();
  await service.db.writeOr(
    [...deleteMemoryRow(scope, key), event("memory.deleted", call, { scope, key }, now)],
    () => notFound("memory entry", key),
  );
}

function event(
  kind: "memory.saved" | "memory.deleted",
  call: Call,
  entry: { scope: string; key: string },
  now: number,
) {
  const sessionKey = entry.scope === GLOBAL_SCOPE ? {} : { session_key: entry.scope };
  return record(now, {
    kind,
    ...sessionKey,
    actor: call.caller.subject,
    data: { scope: entry.scope, key: entry.key },
  });
}

// A run reads its own conversation's memory and the global one; no other exists for it (contract 2).
function checkReadable(call: Call, scope: string): void {
  const bound = boundTo(call.caller);
  if (bound !== null && scope !== bound && scope !== GLOBAL_SCOPE) throw notFound("memory scope", scope);
}

// Global memory goes into every prompt, so writing it needs a scope of its own.
function checkWritable(call: Call, scope: string): void {
  checkReadable(call, scope);
  if (boundTo(call.caller) === null || scope !== GLOBAL_SCOPE) return;
  if (call.caller.scopes.some((held) => held === "*:memory" || held === "*:*")) return;
  throw new ServiceError("forbidden", "Cannot write global memory: the token lacks the scope *:memory", {
    required_scope: "*:memory",
  });
}
