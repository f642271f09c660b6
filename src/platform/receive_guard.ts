import { createLogger } from "../base/log.ts";
import type { IncomingMessage, Outcome, Receive, ReceiveResult } from "./platform.ts";

const log = createLogger("platform");

/**
 * Stores a message. Returns null for a message that can never be stored: the platform would send it again and block the messages after it.
 */
export async function storeOrDrop(
  platform: string,
  receive: Receive,
  incoming: IncomingMessage,
): Promise<ReceiveResult | null> {
  try {
    return await receive(incoming);
  } catch (error) {
    const isInput = error instanceof Error && "code" in error && error.code === "invalid_request";
    if (!isInput) throw error;
    log.warning("Cannot store a message of {platform}: {error}", { platform, error });
    return null;
  }
}

/** Parses an event. Returns null for one of an unknown form, which would come again and block the events after it. */
export function parseOrDrop<T>(platform: string, read: () => T | null): T | null {
  try {
    return read();
  } catch (error) {
    log.warning("Cannot read an event of {platform}: {error}", { platform, error });
    return null;
  }
}

/** Checks the size of a file that a platform names. Returns null for another value: the service adds sizes up. */
export function parseSize(size: unknown): number | null {
  return typeof size === "number" && Number.isFinite(size) && size >= 0 ? size : null;
}

export const CLOSED_QUESTION = "This question is closed.";
export const MAY_NOT_ANSWER = "You can't answer here.";

/** Checks whether a press of a button answered its question. */
export function isAnswered(outcome: Outcome): boolean {
  return outcome === "queued" || outcome === "repeated";
}

/** Shows people the outcome of a press in the background. Logs an error: the outcome is stored already. */
export function showOutcome(platform: string, show: () => Promise<unknown>): void {
  // then() also catches an error that `show` throws before its first await.
  void Promise.resolve().then(show).catch((error) =>
    log.info("Cannot show the outcome of a press on {platform}: {error}", { platform, error })
  );
}

/** Formats the line that takes the place of the buttons after a press. Returns null when the buttons stay. */
export function formatChoice(outcome: Outcome, label: string): string | null {
  if (isAnswered(outcome)) return `> ${label}`;
  return outcome === "late" ? "(closed)" : null;
}
