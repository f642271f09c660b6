import type { ForgeChange } from "../../domain/work/forge_branch.ts";

export interface Account {
  /** The number of the account, which stays when its name changes. */
  id: string;
  name: string;
  isBot: boolean;
}

/** Words that the author of an event did not write. */
export interface Quote {
  author: string;
  text: string;
}

/** An event of a forge that can become a message. */
interface ForgeEvent {
  kind: "issue" | "comment" | "review" | "check";
  /** The account that acted. */
  author: Account;
  /** GitHub: the author's relation to the repository, "" if the payload has none of this author. */
  association: string;
  /** `<owner>/<repo>#<number>`; `!` for a merge request of GitLab, `@<branch>` without a number. */
  conversation: string;
  /** The act of the author, in words of the service. */
  headline: string;
  /** The words of the author. */
  text: string;
  quotes: Quote[];
  change: ForgeChange | null;
}

/** An event, or why it is none for an agent. */
export type Reading = ForgeEvent | string;

/** The rules of a webhook platform for its events. */
interface ForgeRules {
  allow: readonly string[];
  /** Names by which a comment mentions the worker. */
  names: readonly string[];
  /** The account that sends the replies. Null without a gateway. */
  own: Pick<Account, "id"> | null;
}

const TRUSTED_ASSOCIATIONS = ["OWNER", "MEMBER", "COLLABORATOR"];

/** Returns why an event does not reach the worker, or "" if it does. */
export function findRefusal(event: ForgeEvent, { allow, names, own }: ForgeRules): string {
  const { kind, author, association, text } = event;
  const isOwn = own !== null && author.id === own.id;
  if (author.id === "") return "the event names no account";
  // Others run checks for a push of the service. A check of a fork reports what a stranger pushed.
  if (kind === "check") {
    if (event.change !== null && event.change.base !== event.change.head) return "the check is of a fork";
    return isOwn || allow.includes(author.id) ? "" : "allow does not name the account";
  }
  if (isOwn) return "the service's own account did it";
  if (author.isBot) return "a bot did it";
  if (!allow.includes(author.id) && !TRUSTED_ASSOCIATIONS.includes(association)) {
    return "allow does not name the account";
  }
  return kind === "comment" && !names.some((name) => isMentioned(text, name))
    ? "the comment does not mention the worker"
    : "";
}

/** Whether a text has `@name` as a whole word, in any case. */
export function isMentioned(text: string, name: string): boolean {
  const mention = `@${name}`.toLowerCase();
  if (mention === "@") return false;
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(mention); at >= 0; at = lower.indexOf(mention, at + 1)) {
    const before = lower.slice(0, at);
    const after = lower.slice(at + mention.length);
    if (!/[\p{L}\p{N}_]$/u.test(before) && !/^(?:[\p{L}\p{N}_]|[-.][\p{L}\p{N}])/u.test(after)) return true;
  }
  return false;
}

const HEADLINE_CHARACTERS = 1_000;

/** Formats an event as the text of a message. The words of others are not in it. */
export function formatEvent({ author, headline, text }: ForgeEvent): string {
  // Names of branches and addresses are words of others, too. They stay on one line.
  const line = `${author.name} ${headline}`.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").slice(
    0,
    HEADLINE_CHARACTERS,
  );
  return joinTitle(line, text);
}

/** Omits empty quotes. */
export function listQuotes(...quotes: Quote[]): Quote[] {
  return quotes.filter(({ text }) => text.trim() !== "");
}

/** Adds the address of what an event is about. */
export function addAddress(words: string, address: string): string {
  return address === "" ? words : `${words}, ${address}`;
}

/** Joins a title and a text. */
export function joinTitle(title: string, text: string): string {
  return [title.trim(), text.trim()].filter((part) => part !== "").join("\n\n");
}
