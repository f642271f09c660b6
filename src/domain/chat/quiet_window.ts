import { CONTENT_MAX_BYTES } from "../call/field.ts";
import { LOCAL_PLATFORM } from "../call/message_id.ts";

// Other platforms deliver the parts of one thought more slowly than a local chat (contract 4.2).
export const QUIET_WINDOW_LOCAL_MS = 300;
export const QUIET_WINDOW_OTHER_MS = 3_000;
const QUIET_WINDOWS_MAX = 3;

/** Returns the quiet window (debounce window) of a platform in ms. A configured one applies to all platforms. */
export function getQuietWindowMs(platform: string, configured: number | undefined): number {
  return configured ?? (platform === LOCAL_PLATFORM ? QUIET_WINDOW_LOCAL_MS : QUIET_WINDOW_OTHER_MS);
}

/**
 * Returns when the received parts are complete, in Unix ms (contract 4.2). The window restarts with every message but ends
 * after three windows: many short messages must not postpone the bee forever.
 */
export function computeQuietUntil(firstAt: number, lastAt: number, windowMs: number): number {
  return Math.min(lastAt + windowMs, firstAt + QUIET_WINDOWS_MAX * windowMs);
}

/** Size limit of a message with its merged parts. Further parts become the next message (contract 8.18). */
export const MERGED_MAX_BYTES = CONTENT_MAX_BYTES;

/** Groups the parts of one conversation into messages of at most MERGED_MAX_BYTES each, in order of arrival. */
export function groupParts<T extends { bytes: number }>(parts: readonly T[]): T[][] {
  const messages: T[][] = [];
  let bytes = Infinity;
  for (const part of parts) {
    // A line break separates two parts.
    bytes += part.bytes + 1;
    if (bytes > MERGED_MAX_BYTES) {
      messages.push([]);
      bytes = part.bytes;
    }
    messages.at(-1)?.push(part);
  }
  return messages;
}

/** Joins the texts of a message and its merged parts, in order of arrival. */
export function joinParts(parts: readonly { content: string }[]): string {
  return parts.map((part) => part.content).filter((part) => part !== "").join("\n");
}
