import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import { notFound, ServiceError } from "../../domain/call/error.ts";
import { findChatSession, measureUploads, type UploadQuota } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";
import { buildUploadQuota } from "../../files/uploads.ts";

export function getUploadFolder(paths: DataPaths, sessionId: string): string {
  return join(paths.uploads, sessionId);
}

/** Runs `work`. If the session is deleted meanwhile, removes its empty directory and throws `not_found`. */
export async function runInSession<T>(
  { db, paths }: Deps<"db" | "paths">,
  sessionId: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (await findChatSession(db, sessionId) !== null) throw error;
    await Deno.remove(getUploadFolder(paths, sessionId)).catch(() => {});
    throw notFound("session", sessionId);
  }
}

export function getUploadQuota({ limits }: Deps<"limits">): UploadQuota {
  return buildUploadQuota(limits.max_upload_bytes);
}

/** Throws `storage_full` when a session has no quota left. */
export async function checkUploads(deps: Deps<"db" | "limits">, sessionId: string): Promise<void> {
  const used = await measureUploads(deps.db, sessionId);
  const most = getUploadQuota(deps);
  if (used.files >= most.files || used.bytes >= most.bytes) throw buildStorageFull(deps);
}

export function buildStorageFull(deps: Deps<"limits">): ServiceError {
  const { files, bytes } = getUploadQuota(deps);
  return new ServiceError(
    "storage_full",
    `Cannot store the file: a session stores at most ${files} files or ${bytes} bytes. Start another session.`,
  );
}
