import { join } from "node:path";
import { type ParsedMail, simpleParser } from "mailparser";
import nodemailer from "nodemailer";
import { waitForValue, waitUntil } from "../../harness/wait.ts";
import { type Check, MailServers } from "../fakes/mail_servers.ts";

export interface MailFile {
  name: string;
  bytes: Uint8Array;
}

export interface MailOptions {
  from?: string;
  /** Address of the envelope, if not `from`. "" is the null sender. */
  envelope?: string;
  check?: Check;
  subject?: string;
  /** The mail that this one answers. */
  answers?: ReceivedMail | undefined;
  headers?: Record<string, string>;
  html?: string;
  files?: MailFile[];
  messageId?: string;
}

/** A mail of the bot in a person's mailbox. */
export interface ReceivedMail {
  mail: ParsedMail;
  raw: string;
}

let mailboxes = 0;

/** A mailbox for the bot and people who write to it. */
export class MailWorld {
  readonly servers: MailServers;
  readonly address: string;
  readonly ada: string;
  #next = 0;

  constructor(servers: MailServers) {
    const number = ++mailboxes;
    this.servers = servers;
    this.address = `svc${number}@agents.test`;
    this.ada = `ada${number}@people.test`;
  }

  get config() {
    const { imap, smtp, ...rest } = this.servers.config;
    const login = { user: this.address };
    return { ...rest, address: this.address, imap: { ...imap, ...login }, smtp: { ...smtp, ...login } };
  }

  /** Sends a mail to the bot. Returns its Message-ID. */
  async say(text: string, options: MailOptions = {}): Promise<string> {
    const { from = this.ada, answers, headers = {}, subject = "", html, files = [] } = options;
    const messageId = options.messageId ?? `<m${++this.#next}.${this.address}>`;
    const references = answers === undefined
      ? []
      : [answers.mail.references ?? [], answers.mail.messageId ?? ""].flat();
    const composer = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: "windows" });
    const { message } = await composer.sendMail({
      ...{ from, to: this.address, subject, text, messageId, headers },
      ...(html === undefined ? {} : { html }),
      ...(answers === undefined ? {} : { inReplyTo: answers.mail.messageId ?? "", references }),
      attachments: files.map(({ name, bytes }) => ({ filename: name, content: Buffer.from(bytes) })),
    });
    await this.sendRaw(message as Buffer, options);
    return messageId;
  }

  async sendRaw(
    raw: string | Uint8Array,
    { from = this.ada, envelope = from, check = "pass" }: MailOptions = {},
  ): Promise<void> {
    const { ports } = this.servers;
    const transport = nodemailer.createTransport({ host: "127.0.0.1", port: ports[check], ignoreTLS: true });
    await transport.sendMail({
      envelope: { from: envelope, to: this.address },
      raw: typeof raw === "string" ? raw : Buffer.from(raw),
    });
  }

  /** Lists the mails that a person got from the bot, in their order. */
  async mails(person = this.ada): Promise<ReceivedMail[]> {
    const found: ReceivedMail[] = [];
    for (const raw of listMaildir(this.folderOf(person))) found.push({ raw, mail: await simpleParser(raw) });
    return found.filter(({ mail }) => mail.from?.value[0]?.address === this.address);
  }

  async texts(person = this.ada): Promise<string[]> {
    return (await this.mails(person)).map(({ mail }) => mail.text?.trim() ?? "");
  }

  /** Waits for the first mail with a text. */
  async hears(text: string, person = this.ada): Promise<ReceivedMail> {
    return await waitForValue(async () =>
      (await this.mails(person)).find(({ mail }) => mail.text?.trim() === text) ?? null
    );
  }

  /** Waits until the server has put all mails into mailboxes. */
  async delivered(count: number): Promise<void> {
    const folder = this.folderOf(this.address);
    await waitUntil(`${count} mails for the bot`, () => listMaildir(folder).length >= count);
  }

  folderOf(address: string): string {
    const [local = "", domain = ""] = address.split("@");
    return join(this.servers.dir, "mail", domain, local, "Maildir");
  }
}

/** Lists the mails of a mailbox, oldest first. Leaves out a mail that Dovecot moves from new to cur meanwhile. */
function listMaildir(folder: string): string[] {
  const mails = ["new", "cur"].flatMap((part) => listNames(join(folder, part))).flatMap((path) => {
    try {
      return [{ at: Deno.statSync(path).mtime?.getTime() ?? 0, raw: Deno.readTextFileSync(path) }];
    } catch {
      return [];
    }
  });
  return mails.sort((a, b) => a.at - b.at).map(({ raw }) => raw);
}

function listNames(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => join(folder, name));
  } catch {
    return [];
  }
}
