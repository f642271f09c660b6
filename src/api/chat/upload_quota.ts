import { ServiceError } from "../../domain/call/error.ts";
import { uploadQuota } from "../../files/uploads.ts";
import { measureUploads, type UploadQuota } from "../../store/chat/chat.ts";
import type { Deps } from "../call/services.ts";

/** How much a session may hold (reliability UPL-2). */
export function quotaOf({ limits }: Deps<"limits">): UploadQuota {
  return uploadQuota(limits.max_upload_bytes);
}

/** Throws `storage_full` when a session holds as much as it may. */
export async function checkUploads(needs: Deps<"db" | "limits">, sessionId: string): Promise<void> {
  const held = await measureUploads(needs.db, sessionId);
  const most = quotaOf(needs);
  if (held.files >= most.files || held.bytes >= most.bytes) throw noRoom(needs);
}

/** The refusal of a file for a session that is full. */
export function noRoom(needs: Deps<"limits">): ServiceError {
  const { files, bytes } = quotaOf(needs);
  return new ServiceError(
    "storage_full",
    `Cannot store the file: a session holds ${files} files or ${bytes} bytes at most; begin another one`,
  );
}
