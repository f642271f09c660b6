import { ServiceError } from "../domain/error.ts";
import { UPLOADS_PER_SESSION_MAX, UPLOADS_PER_SESSION_MAX_LARGEST } from "../files/uploads.ts";
import { measureUploads, type UploadQuota } from "../store/chat.ts";
import type { Service } from "./service.ts";

/** How much a session may hold (reliability UPL-2). */
export function quotaOf({ config }: Service): UploadQuota {
  return {
    files: UPLOADS_PER_SESSION_MAX,
    bytes: UPLOADS_PER_SESSION_MAX_LARGEST * config.limits.max_upload_bytes,
  };
}

/** Throws `storage_full` when a session holds all that it may. */
export async function checkUploads(service: Service, sessionId: string): Promise<void> {
  const held = await measureUploads(service.db, sessionId);
  const most = quotaOf(service);
  if (held.files >= most.files || held.bytes >= most.bytes) throw noRoom(service);
}

/** A session may hold no more. */
export function noRoom(service: Service): ServiceError {
  const { files, bytes } = quotaOf(service);
  return new ServiceError(
    "storage_full",
    `Cannot store the file: a session holds ${files} files or ${bytes} bytes at most; begin another one`,
  );
}
