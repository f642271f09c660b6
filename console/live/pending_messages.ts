import { createKey } from "./api.ts";

const PREFIX = "svc.unsent.";

interface PendingMessage {
  content: string;
  /** The name of an attached file, or "". */
  file: string;
  key: string;
}

/**
 * Stores a message that is being sent, and returns its idempotency key. The same text keeps its key until the service has it, so
 * that a message that is sent again after a lost answer or a reload stays one message.
 */
export function addPending(id: string, content: string, file: string): string {
  const all = read(id);
  const known = all.find((one) => one.content === content && one.file === file);
  if (known !== undefined) return known.key;
  const key = createKey();
  write(id, [...all, { content, file, key }]);
  return key;
}

/** Removes a message that the service has accepted or refused. */
export function removePending(id: string, key: string): void {
  write(id, read(id).filter((one) => one.key !== key));
}

/** Returns the text that a closed or reloaded page could not deliver. */
export function recoverPending(id: string): string {
  const all = read(id);
  // The field joins several messages into one, which gets a new key.
  if (all.length > 1) write(id, []);
  return all.map(({ content }) => content).filter(Boolean).join("\n\n");
}

function read(id: string): PendingMessage[] {
  return JSON.parse(sessionStorage.getItem(PREFIX + id) ?? "[]");
}

function write(id: string, all: PendingMessage[]): void {
  if (all.length === 0) sessionStorage.removeItem(PREFIX + id);
  else sessionStorage.setItem(PREFIX + id, JSON.stringify(all));
}
