import { digest } from "../../base/bytes.ts";
import { type HeaderField, listMessageIds } from "./header.ts";

const KEY_CHARACTERS = 24;
const THREAD_CHARACTERS = 20;
const NO_THREAD = "0";
const OWN = new RegExp(`^svc\\.[0-9a-f]{${KEY_CHARACTERS}}\\.([0-9a-f]{${THREAD_CHARACTERS}}|${NO_THREAD})$`);

/** Builds the first half of a reply's Message-ID. Equal in every try, and it carries the thread, so that an answer finds it again. */
export function buildLocalId(key: string, thread: string): string {
  const isOurs = new RegExp(`^[0-9a-f]{${THREAD_CHARACTERS}}$`).test(thread);
  return `svc.${digest(key).slice(0, KEY_CHARACTERS)}.${isOurs ? thread : NO_THREAD}`;
}

interface ThreadPlace {
  thread: string;
  /** First half of the Message-ID of the reply that the mail answers, or "". */
  repliesTo: string;
  isFirst: boolean;
}

/** Finds the thread of a mail: that of the service's own mail in its references, or a new one for the first of its references. */
export function findThread(header: readonly HeaderField[], domain: string, fallback: string): ThreadPlace {
  const [answered] = listMessageIds(header, "in-reply-to");
  const references = listMessageIds(header, "references");
  const own = [...answered === undefined ? [] : [answered], ...references.toReversed()]
    .map((id) => parseOwnId(id, domain)).find((id) => id !== null);
  const repliesTo = answered !== undefined && parseOwnId(answered, domain) !== null
    ? readLocal(answered)
    : "";
  if (own !== undefined) return { thread: own === NO_THREAD ? "" : own, repliesTo, isFirst: false };
  const root = references[0] ?? answered ?? listMessageIds(header, "message-id")[0] ?? fallback;
  const isFirst = references.length === 0 && answered === undefined;
  return { thread: digest(root).slice(0, THREAD_CHARACTERS), repliesTo, isFirst };
}

/** Checks whether the service sent a mail. */
export function isOwnMail(header: readonly HeaderField[], domain: string): boolean {
  return listMessageIds(header, "message-id").some((id) => parseOwnId(id, domain) !== null);
}

function parseOwnId(id: string, domain: string): string | null {
  const [local = "", host = "", ...rest] = id.split("@");
  return rest.length > 0 || host.toLowerCase() !== domain ? null : OWN.exec(local)?.[1] ?? null;
}

function readLocal(id: string): string {
  return id.replace(/@.*$/s, "");
}
