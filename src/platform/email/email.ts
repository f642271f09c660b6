import { createConnectedPlatform } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import { cutReply } from "../message_parts.ts";
import type { Part, Platform } from "../platform.ts";
import { withMailbox } from "./imap.ts";
import { Mailbox } from "./mailbox.ts";
import type { EmailSettings } from "./manifest.ts";
import { MailReader } from "./message.ts";
import { deliver } from "./send.ts";
import { checkServer } from "./smtp.ts";

/** Creates a platform for a mailbox: reads it by IMAP, and answers by SMTP. */
export function createEmail(base: PlatformBase, settings: EmailSettings): Platform {
  const { address, trusted_authserv, imap, smtp } = settings;
  const reader = new MailReader(settings);
  const platform = createConnectedPlatform({
    base,
    required: {
      address,
      trusted_authserv,
      "imap.host": imap.host,
      "imap.user": imap.user,
      "imap.password": imap.password,
      "smtp.host": smtp.host,
    },
    createSession(deps) {
      const mailbox = new Mailbox({ ...deps, settings, reader });
      return (resetBackoff) => mailbox.run(resetBackoff);
    },
    deliver: (delivery) => deliver({ settings, reader }, delivery),
    fetch: (ref) => reader.openFile(ref),
    async test() {
      const count = await withMailbox(
        imap,
        imap.mailbox,
        (client) => Promise.resolve(client.mailbox === false ? 0 : client.mailbox.exists),
      );
      await checkServer(smtp);
      return `${imap.mailbox} of ${imap.user} has ${count} mails, and SMTP accepts the login`;
    },
  });
  return { ...platform, cut: (content, media) => cutMail(cutReply(content, media, base.limits)) };
}

/** Joins a text and its file: a mail has space for both. */
function cutMail(parts: Part[]): Part[] {
  const [first, second, ...rest] = parts;
  const isPair = first?.media === null && first.asFile === undefined && second !== undefined &&
    second.media !== null;
  return isPair && rest.length === 0 ? [{ text: first.text, media: second.media }] : parts;
}
