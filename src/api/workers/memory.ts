import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { countBytes } from "../../base/bytes.ts";
import {
  GLOBAL_SCOPE,
  MEMORY_ENTRIES_MAX,
  type MemoryEntry,
  type MemoryFilter,
  type MemorySave,
} from "../../domain/workers/memory.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import {
  deleteMemory as deleteMemoryRow,
  findMemory,
  listMemory as listMemoryRows,
  storeMemory as saveMemoryRow,
} from "../../store/workers/memory.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Lists the entries of a scope by key. Throws `not_found` for a scope that the caller cannot read. */
export async function listMemory({ db }: Deps<"db">, call: Call, filter: MemoryFilter) {
  checkReadable(call, filter.scope);
  return answerPage(await listMemoryRows(db, filter));
}

export async function getMemory({ db }: Deps<"db">, call: Call, scope: string, key: string) {
  checkReadable(call, scope);
  const entry = requireFound(await findMemory(db, scope, key), "memory entry", key);
  return answer(entry);
}

/** Saves or replaces an entry. Throws `forbidden`, `not_found`, or `conflict` for a full scope. */
export async function saveMemory(
  { db, clock, runLimits }: Deps<"db" | "clock" | "runLimits">,
  call: Call,
  input: MemorySave,
): Promise<Answer<MemoryEntry>> {
  checkWritable(call, input.scope);
  await runLimits.take(call, "memory_bytes", countBytes(input.key) + countBytes(input.value));
  const now = clock.now();
  const entry = { ...input, updated_at: now };
  await db.writeOr(
    [...saveMemoryRow(entry, MEMORY_ENTRIES_MAX), buildEvent("memory.saved", call, input, now)],
    () =>
      conflict(
        `Cannot save ${
          JSON.stringify(input.key)
        }: the scope has ${MEMORY_ENTRIES_MAX} entries. Delete some first.`,
      ),
  );
  return answer(entry);
}

export async function deleteMemory(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  scope: string,
  key: string,
): Promise<Answer<DeleteResult>> {
  checkWritable(call, scope);
  const now = clock.now();
  await db.writeOr(
    [...deleteMemoryRow(scope, key), buildEvent("memory.deleted", call, { scope, key }, now)],
    () => notFound("memory entry", key),
  );
  return DELETED;
}

function buildEvent(
  kind: "memory.saved" | "memory.deleted",
  call: Call,
  entry: { scope: string; key: string },
  now: number,
) {
  const sessionKey = entry.scope === GLOBAL_SCOPE ? {} : { session_key: entry.scope };
  return recordBy(call, now, { kind, ...sessionKey, data: { scope: entry.scope, key: entry.key } });
}

// A run reads only its own conversation's memory and the global one (contract 2.8).
function checkReadable(call: Call, scope: string): void {
  const bound = getBoundSessionKey(call.caller);
  if (bound !== null && scope !== bound && scope !== GLOBAL_SCOPE) throw notFound("memory scope", scope);
}

// Every prompt contains the global memory, so a run needs a separate scope to write it (contract 2.8).
function checkWritable(call: Call, scope: string): void {
  checkReadable(call, scope);
  if (getBoundSessionKey(call.caller) === null || scope !== GLOBAL_SCOPE) return;
  if (call.caller.scopes.some((one) => one === "*:memory" || one === "*:*")) return;
  throw new ServiceError("forbidden", "Cannot write global memory: the token lacks the scope *:memory", {
    required_scope: "*:memory",
  });
}
