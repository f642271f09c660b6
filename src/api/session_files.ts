import { join } from "node:path";
import { notFound } from "../domain/error.ts";
import { findChatSession } from "../store/chat.ts";
import type { Service } from "./service.ts";

/** Where the files of a session lie. */
export function uploadFolder(service: Service, sessionId: string): string {
  return join(service.paths.uploads, sessionId);
}

/**
 * Does `work` on the files of a session. A session that is deleted meanwhile takes its directory along, in the middle
 * of whatever is going on: then it is `not_found`, and no empty directory stays behind.
 */
export async function inSession<T>(service: Service, sessionId: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (await findChatSession(service.db, sessionId) !== null) throw error;
    await Deno.remove(uploadFolder(service, sessionId)).catch(() => {});
    throw notFound("session", sessionId);
  }
}
