import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import { notFound, ServiceError } from "../../domain/call/error.ts";
import { findChatSession, measureUploads, type UploadQuota } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";
import { uploadQuota } from "../../files/uploads.ts";

export function uploadFolder(paths: DataPaths, sessionId: string): string {
  return join(paths.uploads, sessionId);
}

/** Runs `work`. If the session is deleted meanwhile, removes its empty directory and throws `not_found`. */
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

export function quotaOf({ limits }: Deps<"limits">): UploadQuota {
  return uploadQuota(limits.max_upload_bytes);
}

/** Throws `storage_full` when a session has no quota left. */
export async function checkUploads(deps: Deps<"db" | "limits">, sessionId: string): Promise<void> {
  const held = await measureUploads(deps.db, sessionId);
  const most = quotaOf(deps);
  if (held.files >= most.files || held.bytes >= most.bytes) throw noRoom(deps);
}

export function noRoom(deps: Deps<"limits">): ServiceError {
  const { files, bytes } = quotaOf(deps);
  return new ServiceError(
    "storage_full",
    `Cannot store the file: a session stores at most ${files} files or ${bytes} bytes. Start another session.`,
  );
}
