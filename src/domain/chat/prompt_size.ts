import { byteLength, cutToBytes } from "../../base/bytes.ts";

interface PromptPart {
  text: string;
  /** Parts with a number are shortened in a prompt that is too large, lowest number first. Others stay whole. */
  give?: number;
}

/** Default of limits.max_prompt_bytes. */
export const PROMPT_MAX_BYTES = 1024 * 1024;

const LEFT_OUT = "\n(The rest is left out: the prompt would be larger than limits.max_prompt_bytes.)\n";

/**
 * Joins the parts to one prompt and shortens the parts with `give` until it has at most `maxBytes`. A note marks each cut
 * (contract 8.18).
 */
export function fitted(parts: readonly PromptPart[], maxBytes: number): string {
  const given = parts.filter(({ text }) => text !== "");
  const texts = given.map(({ text }) => text);
  let over = byteLength(texts.join("\n")) - maxBytes;
  const order = given.map((_, index) => index)
    .filter((index) => given[index]?.give !== undefined)
    .sort((a, b) => (given[a]?.give ?? 0) - (given[b]?.give ?? 0));
  for (const index of order) {
    if (over <= 0) break;
    const text = texts[index] ?? "";
    const bytes = byteLength(text);
    const shorter = cutToBytes(text, Math.max(0, bytes - over - byteLength(LEFT_OUT))) + LEFT_OUT;
    if (byteLength(shorter) >= bytes) continue;
    texts[index] = shorter;
    over -= bytes - byteLength(shorter);
  }
  return texts.join("\n");
}
