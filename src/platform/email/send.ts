import type { ImapFlow } from "imapflow";
import MailComposer from "nodemailer/lib/mail-composer";
import { createLogger } from "../../base/log.ts";
import { readPartFile } from "../part_file.ts";
import { type Delivery, DeliveryError } from "../platform.ts";
import { openImap, withMailbox } from "./imap.ts";
import type { EmailSettings } from "./manifest.ts";
import type { AnsweredMail, MailReader } from "./message.ts";
import { sendMail } from "./smtp.ts";
import { buildLocalId } from "./thread.ts";

const log = createLogger("email");
const REFERENCES_MAX = 20;
const SUBJECT_CHARACTERS = 70;

interface Sending {
  settings: EmailSettings;
  reader: MailReader;
}

/**
 * Sends a part as a mail, and keeps a copy in the mailbox for sent mails. After a try without an outcome, it
 * looks for that copy. Without one the mail may have arrived, and the service does not send it again.
 */
export async function deliver({ settings, reader }: Sending, delivery: Delivery): Promise<string> {
  const { chat, thread, answers, key, sentBefore, isUnanswered = false } = delivery;
  if (!/^[^\s@<>,;]+@[^\s@<>,;]+$/.test(chat)) {
    throw new DeliveryError("refused", `${chat} is not an e-mail address`);
  }
  const local = buildLocalId(key, thread);
  const messageId = `${local}@${reader.domain}`;
  if (sentBefore !== undefined && await isInSent(settings, messageId)) return local;
  if (isUnanswered) {
    throw new DeliveryError("unanswered", "no copy of the mail is in the mailbox for sent mails");
  }
  const answered = answers === "" ? null : await reader.findAnswered(answers);
  const mail = await composeMail(settings.address, messageId, delivery, answered);
  await sendMail(settings.smtp, { from: settings.address, to: chat }, mail);
  await keepCopy(settings, mail);
  return local;
}

async function composeMail(
  from: string,
  messageId: string,
  { chat, part }: Delivery,
  answered: AnsweredMail | null,
): Promise<Uint8Array> {
  const file = await readPartFile(part);
  const text = part.asFile === undefined ? part.text : "";
  const { messageId: inReplyTo = "", references = [], subject } = answered ?? {};
  const [first, ...rest] = [...references, ...inReplyTo === "" ? [] : [inReplyTo]];
  const chain = first === undefined ? [] : [first, ...rest.slice(1 - REFERENCES_MAX)];
  const composer = new MailComposer({
    from,
    to: chat,
    subject: formatSubject(subject, text),
    messageId: `<${messageId}>`,
    ...(inReplyTo === "" ? {} : { inReplyTo: `<${inReplyTo}>` }),
    ...(chain.length === 0 ? {} : { references: chain.map((id) => `<${id}>`).join(" ") }),
    // Programs that answer automatically leave such a mail alone.
    headers: { "Auto-Submitted": "auto-replied", "X-Auto-Response-Suppress": "All" },
    text,
    attachments: file === null
      ? []
      : [{ filename: file.name, content: Buffer.from(file.bytes), contentType: file.mime }],
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return await composer.compile().build();
}

function formatSubject(subject: string | undefined, text: string): string {
  if (subject === undefined) {
    return (text.trim().split("\n")[0] ?? "").slice(0, SUBJECT_CHARACTERS) || "Message";
  }
  return /^re:/i.test(subject) ? subject : `Re: ${subject}`.trimEnd();
}

/** Finds the mailbox that the server uses for sent mails. Returns null without one. */
async function findSent(client: ImapFlow): Promise<string | null> {
  const all = await client.list();
  return all.find(({ specialUse }) => specialUse === "\\Sent")?.path ?? null;
}

async function isInSent({ imap }: EmailSettings, messageId: string): Promise<boolean> {
  const found = await withMailbox(
    imap,
    findSent,
    (client) => client.search({ header: { "message-id": messageId } }),
  );
  return Array.isArray(found) && found.length > 0;
}

/** Stores a copy of a sent mail. Only logs an error, because the mail is sent. */
async function keepCopy({ imap }: EmailSettings, mail: Uint8Array): Promise<void> {
  try {
    const client = await openImap(imap);
    try {
      const path = await findSent(client);
      if (path !== null) await client.append(path, mail, ["\\Seen"]);
    } finally {
      client.close();
    }
  } catch (error) {
    log.warning("Cannot keep a copy of a sent mail: {error}", { error });
  }
}
