import { ServiceError } from "../../domain/call/error.ts";
import { uploadQuota } from "../../files/uploads.ts";
import { measureUploads, type UploadQuota } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";

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
