import { type Attachment, simpleParser } from "mailparser";
import { Readable } from "node:stream";
import { createLogger } from "../../base/log.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { cutQuotes } from "./quoted_text.ts";

const log = createLogger("email");
/** Parts of a mail, on all levels. A part in a part counts, so this is the limit of the depth, too. */
const MAIL_PARTS_MAX = 100;
const PART_HEADER_BYTES = 64 * 1024;
const MAIL_HTML_MAX_CHARACTERS = 250_000;
/** The parser takes time for each line. A mail with the largest file has fewer. */
const MAIL_LINES_MAX = 600_000;
/** Text that is searched for quotes. A message takes less. */
const TEXT_SEARCHED_CHARACTERS = 500_000;
const MAIL_ATTACHMENTS_MAX = 20;
const MAIL_PARSE_MAX_MS = 30_000;
const CHUNK_BYTES = 64 * 1024;

export interface MailContent {
  text: string;
  subject: string;
  /** Name that the sender chose. */
  name: string;
  attachments: { name: string; bytes: Uint8Array<ArrayBuffer> }[];
  unreadable: string[];
}

export const NO_CONTENT: MailContent = { text: "", subject: "", name: "", attachments: [], unreadable: [] };
const UNREADABLE: MailContent = { ...NO_CONTENT, unreadable: ["a mail of this form"] };

/** Parses a mail. A mail that exceeds a limit, or that the parser does not understand, is unreadable. */
export async function parseContent(source: Uint8Array): Promise<MailContent> {
  if (hasTooManyLines(source)) return UNREADABLE;
  const input = Readable.from(cutIntoChunks(source));
  const timer = setTimeout(() => input.destroy(new Error("it took too long")), MAIL_PARSE_MAX_MS);
  try {
    const mail = await simpleParser(input, {
      skipTextToHtml: true,
      skipImageLinks: true,
      keepCidLinks: true,
      checksumAlgo: false,
      maxHtmlLengthToParse: MAIL_HTML_MAX_CHARACTERS,
      maxHeadSize: PART_HEADER_BYTES,
      maxChildNodes: MAIL_PARTS_MAX,
    });
    const unreadable = [
      ...mail.textConversionError === undefined ? [] : ["the text of the mail"],
      ...mail.attachments.length > MAIL_ATTACHMENTS_MAX ? ["the rest of the attachments"] : [],
    ];
    const attachments = mail.attachments.slice(0, MAIL_ATTACHMENTS_MAX).map(nameAttachment);
    const text = cutQuotes((mail.text ?? "").slice(0, TEXT_SEARCHED_CHARACTERS));
    const name = mail.from?.value[0]?.name ?? "";
    return { text, subject: mail.subject ?? "", name, attachments, unreadable };
  } catch (error) {
    log.warning("Cannot parse a mail: {error}", { error });
    return UNREADABLE;
  } finally {
    clearTimeout(timer);
  }
}

function hasTooManyLines(source: Uint8Array): boolean {
  let lines = 0;
  for (let at = source.indexOf(10); at !== -1 && lines <= MAIL_LINES_MAX; at = source.indexOf(10, at + 1)) {
    lines++;
  }
  return lines > MAIL_LINES_MAX;
}

// The parser handles a chunk without a pause.
async function* cutIntoChunks(source: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < source.length; at += CHUNK_BYTES) {
    yield source.subarray(at, at + CHUNK_BYTES);
    await yieldToLoop();
  }
}

function nameAttachment({ filename, contentType, content }: Attachment, at: number) {
  const fallback = contentType === "message/rfc822" ? `mail-${at + 1}.eml` : `attachment-${at + 1}`;
  return { name: filename ?? fallback, bytes: new Uint8Array(content) };
}
