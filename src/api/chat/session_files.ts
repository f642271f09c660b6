import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import { notFound } from "../../domain/call/error.ts";
import { findChatSession } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";

/** The directory of a session's files. */
export function uploadFolder(paths: DataPaths, sessionId: string): string {
  return join(paths.uploads, sessionId);
}

/**
 * Does `work` on the files of a session. A session may be deleted meanwhile, with its directory: then this throws
 * `not_found` and leaves no empty directory behind.
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
