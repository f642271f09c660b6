import { join } from "node:path";
import { createId } from "../../base/id.ts";
import { buildChatSessionKey } from "../../domain/chat/chat.ts";
import { notFound } from "../../domain/call/error.ts";
import type { Media } from "../../domain/chat/message.ts";
import { IncomingFile, openInside } from "../../files/uploads.ts";
import { findUpload, insertUpload, touchChatSession } from "../../store/chat/chat.ts";
import type { Answer } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { findVisibleSession } from "./chat.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import {
  buildStorageFull,
  checkUploads,
  getUploadFolder,
  getUploadQuota,
  runInSession,
} from "./session_files.ts";

export interface UploadTarget {
  maxBytes: number;
  /** Opens the file. `bytes` is its approximate size, or 0 when the client does not send it. */
  open: (originalName: string, bytes: number) => Promise<IncomingFile>;
}

/** Prepares an upload for a session. Throws `not_found`; `open` throws `not_found` or `storage_full`. */
export async function prepareUpload(
  deps: Deps<"db" | "paths" | "limits">,
  call: Call,
  id: string,
): Promise<UploadTarget> {
  const { db, paths, limits } = deps;
  await findVisibleSession(db, call, id);
  const folder = getUploadFolder(paths, id);
  return {
    maxBytes: limits.max_upload_bytes,
    open: async (name, bytes) => {
      await findVisibleSession(db, call, id);
      await checkUploads(deps, id);
      return await runInSession(deps, id, () => IncomingFile.open(folder, createId(), name, bytes));
    },
  };
}

/** Stores an upload. Throws `not_found`, `storage_full`, or `conflict` for a key used with another file. */
export function storeUpload(
  deps: Deps<"db" | "clock" | "paths" | "limits">,
  call: Call,
  id: string,
  sent: IncomingFile,
): Promise<Answer<Media>> {
  return runInSession(deps, id, async () => {
    const kept = await createOnce(deps, call, () => planUpload(deps, call, id, sent));
    if (kept.replayed === true) await sent.discard();
    return kept;
  });
}

async function planUpload(
  deps: Deps<"clock" | "limits">,
  call: Call,
  id: string,
  file: IncomingFile,
): Promise<Creation<Media>> {
  // Only a retry finds a finished file here, if the session was deleted during the first attempt.
  if (file.finished) throw notFound("session", id);
  const media = await file.finish();
  const now = deps.clock.now();
  const upload = { ...media, session_id: id, created_at: now };
  return {
    statements: [
      ...touchChatSession(id, now),
      ...insertUpload(upload, getUploadQuota(deps)),
      recordBy(call, now, {
        kind: "upload.stored",
        session_key: buildChatSessionKey(id),
        data: { path: media.path, size: media.size },
      }),
    ],
    response: media,
    lost: () => buildStorageFull(deps),
    undo: () => Deno.remove(media.path).catch(() => {}),
  };
}

/** A file for a client. The caller closes it. */
export interface MediaFile {
  file: Deno.FsFile;
  size: number;
  mime: string;
  originalName: string;
}

/** Opens a stored file of a session. Throws `not_found`. */
export async function openMedia(
  { db, paths }: Deps<"db" | "paths">,
  call: Call,
  id: string,
  name: string,
): Promise<MediaFile> {
  await findVisibleSession(db, call, id);
  const folder = getUploadFolder(paths, id);
  const found = await openInside(folder, join(folder, name));
  if (found === null) throw notFound("file", name);
  const { file, path, size } = found;
  try {
    const stored = await findUpload(db, path);
    const originalName = stored?.original_name ?? name;
    return { file, size, mime: stored?.mime ?? "application/octet-stream", originalName };
  } catch (error) {
    file.close();
    throw error;
  }
}
