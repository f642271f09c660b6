import { type HeaderField, listValues } from "./header.ts";

/** Says why a mail does not come from a person, or "". An answer to such a mail could start a loop. */
export function findAutomatic(header: readonly HeaderField[]): string {
  const has = (name: string, form: RegExp) => listValues(header, name).some((value) => form.test(value));
  if (has("return-path", /^<\s*>/) || has("content-type", /^\s*multipart\/report\b/i)) return "a bounce";
  if (has("auto-submitted", /^(?!\s*no\b)/i)) return "an automatic reply";
  if (header.some(({ name }) => AUTOMATIC.has(name))) return "an automatic reply";
  if (has("precedence", /^\s*(bulk|junk|list|auto_reply)\b/i)) return "bulk mail";
  return header.some(({ name }) => LISTS.test(name)) ? "mail of a list" : "";
}

const AUTOMATIC: ReadonlySet<string> = new Set([
  "x-autoreply",
  "x-autorespond",
  "x-autoresponse",
  "x-auto-reply",
  "x-mail-autoreply",
  "x-failed-recipients",
]);
const LISTS = /^(list-.*|x-mailing-list|mailing-list|x-loop)$/;
