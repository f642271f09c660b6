// Reads new mails of one mailbox in order, and remembers the last one after its message is stored.
import type { FetchMessageObject, ImapFlow } from "imapflow";
import { sleep } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { SessionDeps } from "../connected_platform.ts";
import { DeliveryError } from "../platform.ts";
import { storeOrDrop } from "../receive_guard.ts";
import { EmailError, openImap, toEmailError } from "./imap.ts";
import type { EmailSettings } from "./manifest.ts";
import { MAIL_HEADER_MAX_BYTES, type MailReader } from "./message.ts";
import { addRecent, isRecent, type Position, readPosition, savePosition } from "./position.ts";

const log = createLogger("email");
// A connection can be dead without an error, and a server without IDLE reports nothing: each round asks.
const ROUND_MS = 60_000;
/** Tries for a mail that the server can't read. It would block the mails after it. */
const MAIL_TRIES_MAX = 3;
const DAY_MS = 24 * 60 * 60 * 1000;

interface MailboxDeps extends SessionDeps {
  settings: EmailSettings;
  reader: MailReader;
}

export class Mailbox {
  readonly #deps: MailboxDeps;
  #failing = { uid: 0, tries: 0 };

  constructor(deps: MailboxDeps) {
    this.#deps = deps;
  }

  /** Connects, stores new mails, and waits for more until the connection fails or the platform stops. */
  async run(resetBackoff: () => void): Promise<void> {
    const { settings: { imap }, connection, signal } = this.#deps;
    const client = await openImap(imap, signal);
    const close = () => client.close();
    signal.addEventListener("abort", close);
    try {
      const news = watchMailbox(client);
      const { uidValidity, uidNext } = await client.mailboxOpen(imap.mailbox, { readOnly: true });
      let position = await this.#findPosition(client, String(uidValidity), uidNext);
      connection.setState("connected");
      while (!signal.aborted) {
        news.isNew = false;
        position = await this.#readNew(client, position);
        resetBackoff();
        await this.#waitForNews(client, news);
      }
    } catch (error) {
      throw toEmailError("IMAP", error);
    } finally {
      signal.removeEventListener("abort", close);
      client.close();
    }
  }

  /** A new mailbox starts after its present mails. In a mailbox with new numbers, the mails since the last one are read. */
  async #findPosition(client: ImapFlow, validity: string, uidNext: number): Promise<Position> {
    const { gap, clock } = this.#deps;
    const last = await store(() => readPosition(gap));
    if (last?.validity === validity) return last;
    // Without it, the service would answer all mails that the mailbox has.
    if (!Number.isInteger(uidNext)) throw new EmailError("IMAP names no UIDNEXT", "unreachable", true);
    // IMAP counts in seconds.
    const now = Math.floor(clock.now() / 1000) * 1000;
    const start = { validity, uid: uidNext - 1, at: last?.at ?? now, recent: last?.recent ?? [] };
    const position = last === null ? start : await this.#readAgain(client, { ...start, uid: 0 }, uidNext);
    await store(() => savePosition(gap, position));
    return position;
  }

  async #readAgain(client: ImapFlow, start: Position, uidNext: number): Promise<Position> {
    log.warning("The mailbox has new numbers. Reading its mails since {at} again", {
      at: new Date(start.at),
    });
    let position = start;
    for (const uid of await listUids(client, { since: new Date(start.at - DAY_MS) })) {
      if (uid < uidNext) position = await this.#handle(client, position, { uid, from: start.at });
    }
    return { ...position, uid: uidNext - 1 };
  }

  async #readNew(client: ImapFlow, start: Position): Promise<Position> {
    const { gap, signal } = this.#deps;
    let position = start;
    for (const uid of await listUids(client, { uid: `${start.uid + 1}:*` })) {
      // The range always includes the newest mail.
      if (uid <= start.uid || signal.aborted) continue;
      position = { ...await this.#handle(client, position, { uid, from: 0 }), uid };
      await store(() => savePosition(gap, position));
    }
    return position;
  }

  async #handle(
    client: ImapFlow,
    position: Position,
    { uid, from }: { uid: number; from: number },
  ): Promise<Position> {
    const { reader, receive, connection } = this.#deps;
    const mail = await this.#skipAfterTries(uid, () => fetchHead(client, uid));
    const at = mail === null ? 0 : new Date(mail.internalDate ?? 0).getTime();
    if (mail === null || at < from) return position;
    connection.recordEvent();
    const handled = { ...position, at: Math.max(position.at, at) };
    const { validity } = position;
    const heard = await this.#skipAfterTries(uid, () => reader.read(client, { ...mail, validity }));
    if (heard === null || isRecent(position, heard.mark)) return handled;
    await store(() => storeOrDrop("e-mail", receive, heard.incoming));
    return addRecent(handled, heard.mark);
  }

  /** Skips a mail that the server refuses again and again. A lost connection says nothing about the mail. */
  async #skipAfterTries<T>(uid: number, read: () => Promise<T | null>): Promise<T | null> {
    try {
      return await read();
    } catch (error) {
      if (!isAboutMail(error)) throw error;
      this.#failing = { uid, tries: this.#failing.uid === uid ? this.#failing.tries + 1 : 1 };
      if (this.#failing.tries < MAIL_TRIES_MAX) throw error;
      log.error("Cannot read mail {uid}: {error}. Skipping it", { uid, error });
      return null;
    }
  }

  async #waitForNews(client: ImapFlow, news: News): Promise<void> {
    const { clock, signal } = this.#deps;
    if (news.isNew) return;
    const ended = new AbortController();
    const { promise: arrived, resolve } = Promise.withResolvers<void>();
    news.wake = resolve;
    // The next command ends IDLE.
    void client.idle().catch(() => {});
    await Promise.race([arrived, sleep(clock, ROUND_MS, AbortSignal.any([signal, ended.signal]))]);
    ended.abort();
    if (news.isClosed && !signal.aborted) throw new Error("the server closed the connection");
    if (!signal.aborted) await client.noop();
  }
}

interface News {
  isNew: boolean;
  isClosed: boolean;
  wake: () => void;
}

function watchMailbox(client: ImapFlow): News {
  const news: News = { isNew: false, isClosed: false, wake: () => {} };
  client.on("exists", () => {
    news.isNew = true;
    news.wake();
  });
  client.on("close", () => {
    news.isClosed = true;
    news.wake();
  });
  return news;
}

async function listUids(client: ImapFlow, query: { uid?: string; since?: Date }): Promise<number[]> {
  const found = await client.search(query, { uid: true });
  return (found || []).toSorted((a, b) => a - b);
}

async function fetchHead(client: ImapFlow, uid: number): Promise<FetchMessageObject | null> {
  const query = { uid: true, size: true, internalDate: true, source: { maxLength: MAIL_HEADER_MAX_BYTES } };
  return await client.fetchOne(uid, query, { uid: true }) || null;
}

function isAboutMail(error: unknown): boolean {
  const { responseStatus = "", code = "" } = error as { responseStatus?: string; code?: string };
  return ["NO", "BAD"].includes(responseStatus) || /TooLarge|TooMany|^ParserError/.test(code);
}

/** Runs a step of the database. Its error is not one of the mail server. */
async function store<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw new DeliveryError(
      "unreachable",
      `Cannot store a mail: ${error instanceof Error ? error.message : error}`,
    );
  }
}
