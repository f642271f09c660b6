// Fetches the files of received messages, or adds to their text why the fetch failed. Their status stays the same.
import { join } from "node:path";
import { type Backoff, backoffMs } from "../../base/backoff.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { DataPaths } from "../../base/paths.ts";
import { createId } from "../../base/id.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { formatPlaceFolder } from "../../domain/chat/platform.ts";
import { buildUploadQuota, IncomingFile } from "../../files/uploads.ts";
import { DeliveryError, type Platform, type RemoteFile } from "../../platform/platform.ts";
import {
  attachFile,
  giveUpFile,
  listAttachments,
  type WaitingAttachment,
} from "../../store/chat/attachment.ts";
import { insertUpload } from "../../store/chat/chat.ts";
import type { Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("attachments");
/** The debounce window waits this long for a file (contract 10.1). */
const FETCH_MAX_MS = 60_000;
const FETCHES_MAX = 8;
// A platform whose files hang must leave capacity for the others.
const PLATFORM_FETCHES_MAX = 4;
// Delay after a failed database write.
const AGAIN_MS = 1_000;
const RETRY: Backoff = { firstMs: 500, lastMs: 8_000 };

interface AttachmentOptions extends StageServices {
  platforms: readonly Platform[];
  paths: DataPaths;
  maxUploadBytes: number;
}

/** Creates the stage that fetches the files of messages. The debounce window of the conversation stays open meanwhile (contract 10.1). */
export function createAttachments(options: AttachmentOptions): Stage {
  const { db, clock } = options;
  /** Platforms of the messages whose files are being fetched, by message id. */
  const busy = new Map<string, string>();
  const stage = new Stage(options, { name: "attachments", wakeup: WAKEUP.attachments, step });
  return stage;

  async function step(signal: AbortSignal): Promise<number> {
    for (;;) {
      const full = [...new Set(busy.values())].filter(isFull);
      const limit = FETCHES_MAX - busy.size;
      const waiting = await listAttachments(db, { busy: [...busy.keys()], full, limit });
      // Each pass fills a platform, so this loop ends.
      for (const message of waiting) if (!isFull(message.platform)) startFetch(message, signal);
      if (waiting.every(({ id }) => busy.has(id))) return Infinity;
    }
  }

  function isFull(platform: string): boolean {
    return [...busy.values()].filter((one) => one === platform).length >= PLATFORM_FETCHES_MAX;
  }

  function startFetch(message: WaitingAttachment, signal: AbortSignal): void {
    const { id, platform } = message;
    busy.set(id, platform);
    void settle(options, message, signal)
      .catch(async (error) => {
        log.error("Cannot store the file of message {id}: {error}", { id, error });
        await sleep(clock, AGAIN_MS, signal);
      })
      .finally(() => {
        busy.delete(id);
        if (!signal.aborted) stage.wake();
      });
  }
}

async function settle(
  options: AttachmentOptions,
  message: WaitingAttachment,
  signal: AbortSignal,
): Promise<void> {
  const { db } = options;
  const file = JSON.parse(message.attachment) as RemoteFile;
  const problem = await fetchUntil(options, message, file, signal);
  // The next start fetches the file again from its start.
  if (problem === null || signal.aborted) return;
  await db.write(giveUpFile(message.id, `[Cannot fetch the file ${file.name}: ${problem}]`));
}

/** Fetches a file within its time limit. Returns null on success, or why it failed. */
async function fetchUntil(
  options: AttachmentOptions,
  message: WaitingAttachment,
  file: RemoteFile,
  signal: AbortSignal,
): Promise<string | null> {
  const { clock, maxUploadBytes } = options;
  if ((file.size ?? 0) > maxUploadBytes) return formatTooLarge(maxUploadBytes);
  const endsAt = message.received_at + FETCH_MAX_MS;
  for (let attempt = 1;; attempt++) {
    const left = endsAt - clock.now();
    if (left <= 0) return `it did not arrive within ${FETCH_MAX_MS / 1000} s`;
    const late = new AbortController();
    const end = () => late.abort();
    const cancel = clock.after(left, end);
    // Not AbortSignal.any(): its signal can be garbage-collected while a body is read, and then nothing ends the read.
    signal.addEventListener("abort", end, { once: true });
    try {
      await fetchOnce(options, message, file, late.signal);
      return null;
    } catch (error) {
      if (signal.aborted) return "";
      if (error instanceof TooLarge) return formatTooLarge(maxUploadBytes);
      if (error instanceof ServiceError) return error.message;
      if (error instanceof DeliveryError && error.why === "refused") return error.message;
      if (late.signal.aborted) continue;
      const retryAfterMs = error instanceof DeliveryError ? error.retryAfterMs : null;
      await sleep(
        clock,
        Math.min(retryAfterMs ?? backoffMs(RETRY, attempt), Math.max(0, endsAt - clock.now())),
        signal,
      );
    } finally {
      cancel();
      signal.removeEventListener("abort", end);
    }
  }
}

class TooLarge extends Error {}

function formatTooLarge(maxBytes: number): string {
  return `it is larger than ${Math.floor(maxBytes / 1024 / 1024)} MiB`;
}

async function fetchOnce(
  { db, clock, platforms, paths, maxUploadBytes }: AttachmentOptions,
  message: WaitingAttachment,
  remote: RemoteFile,
  signal: AbortSignal,
): Promise<void> {
  const platform = platforms.find(({ name }) => name === message.platform);
  if (platform?.fetch === undefined) throw new DeliveryError("refused", "its platform is not connected");
  const folder = formatPlaceFolder(message.session_key);
  const fetched = await platform.fetch(remote.ref, signal);
  const { name, bytes } = fetched instanceof ReadableStream ? { name: remote.name, bytes: fetched } : fetched;
  const file = await IncomingFile.open(join(paths.uploads, folder), createId(), name, remote.size ?? 0);
  let isKept = false;
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      if (file.size + chunk.length > maxUploadBytes) throw new TooLarge();
      await file.write(chunk);
    }
    const media = await file.finish();
    const now = clock.now();
    const upload = { ...media, session_id: folder, created_at: now };
    const statements: Statement[] = [
      ...attachFile(message.id, media),
      ...insertUpload(upload, buildUploadQuota(maxUploadBytes)),
      record(now, {
        kind: "upload.stored",
        session_key: message.session_key,
        message_id: message.id,
        data: { path: media.path, size: media.size },
      }),
    ];
    isKept = (await db.write(statements)).won;
    if (!isKept) {
      await Deno.remove(media.path).catch(() => {});
      throw new DeliveryError("refused", "the upload quota of this conversation is used up");
    }
  } finally {
    if (!isKept) await file.discard();
  }
}
