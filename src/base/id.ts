import { v7 } from "uuid";

/** A new UUIDv7: unique, and in this process always greater than the one before, so id order is creation order (contract 1). */
export function newId(): string {
  return v7();
}
