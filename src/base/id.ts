import { v7, validate } from "uuid";

/** Creates a UUIDv7, always greater than the previous one of this process, so that id order is creation order. */
export function createId(): string {
  return v7();
}

/** Returns whether a text is a UUID of any version. */
export function isUuid(text: string): boolean {
  return validate(text);
}
