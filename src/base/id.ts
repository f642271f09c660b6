import { v7, validate } from "uuid";

/** A new UUIDv7: unique, and in this process always greater than the one before, so id order is creation order (contract 1). */
export function newId(): string {
  return v7();
}

/** Whether a text is a UUID, of whatever version. */
export function isUuid(text: string): boolean {
  return validate(text);
}
