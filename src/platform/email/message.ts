import type { ImapFlow } from "imapflow";
import { LRUCache } from "lru-cache";
import { createLogger } from "../../base/log.ts";
import { DeliveryError, type IncomingMessage, type NamedBytes } from "../platform.ts";
import { verifySender } from "./authentication.ts";
import { findAutomatic } from "./automatic.ts";
import { type MailContent, NO_CONTENT, parseContent } from "./content.ts";
import { type HeaderField, listMessageIds, parseHeader } from "./header.ts";
import { MAIL_MAX_BYTES, withMailbox } from "./imap.ts";
import type { EmailSettings } from "./manifest.ts";
import { markMail } from "./position.ts";
import { findThread, isOwnMail } from "./thread.ts";

const log = createLogger("email");
/** A longer header is not read, so its sender is not verified. */
export const MAIL_HEADER_MAX_BYTES = 256 * 1024;
/** Mails whose headers a reply needs. For others, the service asks the server again. */
const ANSWERED_KNOWN_MAX = 500;
/** The files of a mail are usually fetched right after it. */
const CONTENT_KEPT_MS = 60_000;
const SUBJECT_MAX_CHARACTERS = 500;

interface FetchedMail {
  uid: number;
  validity: string;
  size?: number | undefined;
  /** The first bytes. */
  source?: Uint8Array | undefined;
}

/** Headers of a mail that a reply repeats. */
export interface AnsweredMail {
  subject: string;
  messageId: string;
  references: string[];
}

interface HeardMail {
  incoming: IncomingMessage;
  mark: string;
}

/** Reads the mails of people whose domain is verified. */
export class MailReader {
  readonly #settings: EmailSettings;
  readonly #domain: string;
  readonly #answered = new LRUCache<string, AnsweredMail>({ max: ANSWERED_KNOWN_MAX });
  readonly #contents = new LRUCache<string, MailContent>({
    max: 1,
    ttl: CONTENT_KEPT_MS,
    ttlAutopurge: true,
  });

  constructor(settings: EmailSettings) {
    this.#settings = settings;
    this.#domain = settings.address.replace(/^.*@/, "");
  }

  get domain(): string {
    return this.#domain;
  }

  /** Reads a mail. Returns null for one that gets no answer. */
  async read(client: ImapFlow, mail: FetchedMail): Promise<HeardMail | null> {
    const id = `${mail.validity}-${mail.uid}`;
    const header = parseHeader(mail.source ?? new Uint8Array());
    const sender = header === null ? "its header is too long" : this.#findSender(header);
    if (header === null || typeof sender === "string") {
      log.info("Left mail {id} alone: {reason}", { id, reason: sender });
      return null;
    }
    const { thread, repliesTo, isFirst } = findThread(header, this.#domain, id);
    const content = await this.#readContent(client, id, mail);
    const answered = readAnswered(header, content.subject);
    this.#answered.set(id, answered);
    const incoming: IncomingMessage = {
      chat: sender.address,
      thread,
      id,
      sender: { id: sender.address, name: content.name || sender.name },
      text: isFirst ? addSubject(content) : content.text,
      files: content.attachments.map(({ name, bytes }, at) => ({
        ref: `${id}/${at}`,
        name,
        size: bytes.length,
      })),
      excerpts: [],
      unreadable: content.unreadable,
      isDirect: true,
      isMentioned: true,
      repliesTo,
      choice: "",
      isData: false,
    };
    return { incoming, mark: markMail(sender.address, answered.messageId || id) };
  }

  #findSender(header: readonly HeaderField[]) {
    const automatic = isOwnMail(header, this.#domain) ? "the service sent it" : findAutomatic(header);
    if (automatic !== "") return automatic;
    const sender = verifySender(header, this.#settings);
    return typeof sender !== "string" && sender.address === this.#settings.address
      ? "the service sent it"
      : sender;
  }

  async #readContent(client: ImapFlow, id: string, { uid, size = 0 }: FetchedMail): Promise<MailContent> {
    if (size > MAIL_MAX_BYTES) {
      return { ...NO_CONTENT, unreadable: [`a mail of more than ${MAIL_MAX_BYTES / 1024 / 1024} MB`] };
    }
    const mail = await client.fetchOne(uid, { uid: true, source: true }, { uid: true });
    const content = await parseContent((mail && mail.source) || new Uint8Array());
    if (content.attachments.length > 0) this.#contents.set(id, content);
    return content;
  }

  /** Opens an attachment. Throws DeliveryError. */
  async openFile(ref: string): Promise<NamedBytes> {
    const [id = "", at = ""] = ref.split("/");
    const content = this.#contents.get(id) ?? await this.#fetchContent(id);
    const file = content?.attachments[Number(at)];
    if (file === undefined) throw new DeliveryError("refused", "the mail is no longer in the mailbox");
    return { name: file.name, bytes: new Blob([file.bytes]).stream() };
  }

  async #fetchContent(id: string): Promise<MailContent | null> {
    return await this.#withMail(id, (client, uid) => this.#readContent(client, id, { uid, validity: "" }));
  }

  /** Finds the headers of the mail that a reply answers. Returns null for a mail that left the mailbox. */
  async findAnswered(id: string): Promise<AnsweredMail | null> {
    const known = this.#answered.get(id);
    if (known !== undefined) return known;
    return await this.#withMail(id, async (client, uid) => {
      const mail = await client.fetchOne(uid, { uid: true, source: { maxLength: MAIL_HEADER_MAX_BYTES } }, {
        uid: true,
      });
      if (!mail || mail.source === undefined) return null;
      const header = parseHeader(mail.source);
      return header === null ? null : readAnswered(header, (await parseContent(mail.source)).subject);
    });
  }

  async #withMail<T>(
    id: string,
    read: (client: ImapFlow, uid: number) => Promise<T | null>,
  ): Promise<T | null> {
    const { imap } = this.#settings;
    const [, validity = "", uid = ""] = /^(\d+)-(\d+)$/.exec(id) ?? [];
    if (uid === "") return null;
    return await withMailbox(imap, imap.mailbox, async (client) => {
      const isSame = client.mailbox !== false && String(client.mailbox.uidValidity) === validity;
      return isSame ? await read(client, Number(uid)) : null;
    });
  }
}

function readAnswered(header: readonly HeaderField[], subject: string): AnsweredMail {
  return {
    subject: subject.slice(0, SUBJECT_MAX_CHARACTERS),
    messageId: listMessageIds(header, "message-id")[0] ?? "",
    references: listMessageIds(header, "references"),
  };
}

/** Adds the subject of a new conversation, except to a command. A mail without a text has only its subject. */
function addSubject({ text, subject }: MailContent): string {
  if (text.trim() === "" || subject.trim() === "") return text.trim() === "" ? subject : text;
  return /^[/!]/.test(text) ? text : `${text}\n\nSubject: ${subject}`;
}
