import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/config/schema.ts";
import { listSecretReferences } from "../../../src/config/secret_references.ts";
import { listSettings } from "../../../src/config/settings.ts";
import { checkSnippet } from "../../../src/config/snippet.ts";
import { createTempDir } from "../../harness/service/process.ts";

async function load(lines: Record<string, unknown>) {
  await using folder = await createTempDir();
  await Deno.writeTextFile(join(folder.path, "password"), "imap-secret\n", { mode: 0o600 });
  const path = join(folder.path, "config.yaml");
  await Deno.writeTextFile(path, JSON.stringify({ platforms: { mail: { kind: "email", ...lines } } }));
  return await loadConfig(path, {});
}

const findFault = (lines: Record<string, unknown>) =>
  load(lines).then(() => "", (error: Error) => error.message.replace(/^.*config\.yaml:\d+:\d+: /, ""));

describe("the configuration of a mailbox", () => {
  it("reads passwords from files and secrets, and shows none", async () => {
    const loaded = await load({
      address: "Agents@Example.org",
      allow: ["Ada@Example.org"],
      imap: { host: "127.0.0.1", tls: "none", password_file: "password" },
      smtp: { password: "secret:mail" },
    });
    expect(loaded.config.platforms.mail).toMatchObject({
      address: "agents@example.org",
      allow: ["ada@example.org"],
      imap: { password: "imap-secret", mailbox: "INBOX" },
      smtp: { tls: "implicit" },
    });
    expect(listSecretReferences(loaded.config)).toEqual([{ secret: "mail", user: "platform:mail" }]);
    const settings = listSettings(loaded).filter(({ key }) => key.endsWith("password"));
    expect(settings.map(({ key, value, source }) => [key, value, source])).toEqual([
      ["platforms.mail.imap.password", "(set, not shown)", "file"],
      ["platforms.mail.smtp.password", "(set, not shown)", "file"],
    ]);
    const snippet = "platforms: {other: {kind: email, imap: {password_file: /nowhere}}}";
    expect(checkSnippet(snippet, loaded)).toMatchObject({ valid: true });
  });

  it("refuses a connection without TLS to another machine, and names each wrong field", async () => {
    for (const host of ["localhost", "127.0.0.1", "127.8.0.1", "::1", "[::1]"]) {
      expect([host, await findFault({ imap: { host, tls: "none" }, smtp: { host, tls: "none" } })]).toEqual([
        host,
        "",
      ]);
    }
    for (
      const host of [
        "imap.example.org",
        "127.example.org",
        "10.0.0.1",
        "0.0.0.0",
        "::2",
        "localhost.example.org",
      ]
    ) {
      expect(await findFault({ imap: { host, tls: "none" } })).toMatch(
        /^platforms\.mail\.imap\.tls: must be implicit or/,
      );
      expect(await findFault({ smtp: { host, tls: "none" } })).toMatch(
        /^platforms\.mail\.smtp\.tls: must be implicit or/,
      );
    }
    for (
      const [lines, fault] of [
        [{ address: "agents" }, /^platforms\.mail\.address: /],
        [{ trusted_authserv: "mx example" }, /^platforms\.mail\.trusted_authserv: must be a domain/],
        [{ aligned: ["@example.org"] }, /^platforms\.mail\.aligned/],
        [{ imap: { tls: "yes" } }, /^platforms\.mail\.imap\.tls: must be one of implicit, starttls, none/],
        [{ imap: { port: 70_000 } }, /^platforms\.mail\.imap\.port: /],
        [{ smtp: { mailbox: "x" } }, /^platforms\.mail\.smtp\.mailbox: unknown key/],
        [{ base_url: "https://example.org" }, /^platforms\.mail\.base_url: unknown key/],
      ] as const
    ) expect([lines, await findFault(lines)]).toEqual([lines, expect.stringMatching(fault)]);
  });
});
