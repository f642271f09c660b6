import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import { notFound } from "../../domain/call/error.ts";
import { findChatSession } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";

export function uploadFolder(paths: DataPaths, sessionId: string): string {
  return join(paths.uploads, sessionId);
}

/**
 * Runs `work` on a session's files. When the session is deleted meanwhile, throws `not_found` and removes the empty
 * directory.
 */
export async function inSession<T>(
  { db, paths }: Deps<"db" | "paths">,
  sessionId: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (await findChatSession(db, sessionId) !== null) throw error;
    await Deno.remove(uploadFolder(paths, sessionId)).catch(() => {});
    throw notFound("session", sessionId);
  }
}
