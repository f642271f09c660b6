import { z } from "zod";
import { load } from "../../base/lazy_import.ts";
import { isLoopback } from "../../base/address.ts";
import { commonSettings, defineManifest } from "../manifest.ts";

const { base_url: _none, ...common } = commonSettings;

const domain = z.string().toLowerCase().regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, {
  error: "must be a domain such as example.org",
});

const server = {
  host: z.string().default(""),
  port: z.int().min(1).max(65_535).optional(),
  tls: z.enum(["implicit", "starttls", "none"]).default("implicit"),
  user: z.string().default(""),
  password: z.string().default(""),
};

function requireTls(
  { tls, host }: { tls: string; host: string },
  context: z.RefinementCtx<{ tls: string; host: string }>,
): void {
  if (tls !== "none" || host === "" || isLoopback(host)) return;
  context.addIssue({
    code: "custom",
    path: ["tls"],
    message:
      "must be implicit or starttls: without TLS, the password and every mail cross the network in clear text." +
      " none is for a server on this machine, such as 127.0.0.1",
  });
}

const settings = z.strictObject({
  ...common,
  kind: z.literal("email"),
  // Upper and lower case name the same mailbox.
  allow: z.array(z.string().toLowerCase()).default([]),
  address: z.union([
    z.literal(""),
    z.email({ error: "must be an e-mail address such as agents@example.org" }).toLowerCase(),
  ]).default(""),
  trusted_authserv: z.union([z.literal(""), domain]).default(""),
  aligned: z.array(domain).max(50).default([]),
  imap: z.strictObject({ ...server, mailbox: z.string().min(1).default("INBOX") })
    .superRefine(requireTls).prefault({}),
  smtp: z.strictObject(server).superRefine(requireTls).prefault({}),
});

export type EmailSettings = z.output<typeof settings>;

export const EMAIL = defineManifest({
  kind: "email",
  settings,
  secrets: ["imap.password", "smtp.password"],
  guide: {
    title: "E-mail",
    steps: [
      "Create a mailbox for your agents. The service answers only mail that arrives after its first connection.",
      "In the source of a received mail, find the first Authentication-Results. Its first word is trusted_authserv.",
    ],
    lines: [
      "mail:",
      "  kind: email",
      "  address: agents@example.org",
      "  trusted_authserv: mx.example.org",
      "  allow: [ada@example.org]",
      "  imap:",
      "    host: imap.example.org",
      "    user: agents@example.org",
      "    password_file: /etc/svc/mail.password",
      "  smtp:",
      "    host: smtp.example.org",
      "    user: agents@example.org",
      "    password_file: /etc/svc/mail.password",
      "  worker: Ada   # gets messages without a mention",
    ],
  },
  // Most servers take a mail of 25 MB, in which a file grows by a third.
  limits: { characters: 100_000, fileBytes: 18_000_000 },
  async load() {
    const { createEmail } = await load<typeof import("./email.ts")>("./email.ts", import.meta.url);
    return createEmail;
  },
});
