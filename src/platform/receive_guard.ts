import { logger } from "../base/log.ts";
import type { Incoming, Receive, Received } from "./platform.ts";

const log = logger("platform");

/** Stores what came. What can never be stored is null and left out: it would come again for ever, with all that is behind it. */
export async function storeOrLeave(
  platform: string,
  receive: Receive,
  incoming: Incoming,
): Promise<Received | null> {
  try {
    return await receive(incoming);
  } catch (error) {
    const isInput = error instanceof Error && "code" in error && error.code === "invalid_request";
    if (!isInput) throw error;
    log.warning("A message of {platform} cannot be stored: {error}", { platform, error });
    return null;
  }
}

/** What was read of an event. One that has another form than all that we know is null and left out, as one that cannot be stored. */
export function readOrLeave<T>(platform: string, read: () => T | null): T | null {
  try {
    return read();
  } catch (error) {
    log.warning("An event of {platform} cannot be read: {error}", { platform, error });
    return null;
  }
}

/** The size of a file as a platform says it; null when it is none: sums are made of it. */
export function sizeOf(size: unknown): number | null {
  return typeof size === "number" && Number.isFinite(size) && size >= 0 ? size : null;
}
