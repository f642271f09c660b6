import { createHash } from "node:crypto";

/** What tells one text from any other: its SHA-256 in hex. */
export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
