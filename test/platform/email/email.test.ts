import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { writeAskingClaude } from "../../harness/fakes/asking_claude.ts";
import type { App } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { MAIL_SERVERS_MISSING, MailServers } from "../fakes/mail_servers.ts";
import { MailWorld, type ReceivedMail } from "../worlds/mail.ts";
import { openPlatforms, openWorld, readPlatformCheck, waitForState } from "../worlds/open.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const CODE = /[A-Z0-9]{4}-[A-Z0-9]{4}/;

async function sendFile(app: App, messageId: string, content: string, file: File): Promise<void> {
  const form = new FormData();
  form.set("message_id", messageId);
  form.set("content", content);
  form.set("file", file);
  const headers = { authorization: `Bearer ${await app.token()}` };
  const request = new Request("http://localhost/api/messages", { method: "POST", headers, body: form });
  const response = await app.server.fetch(request);
  expect(response.status, await response.text()).toBe(201);
}

describe.skipIf(MAIL_SERVERS_MISSING !== "")("a mailbox on Dovecot and Postfix [MAI-1]", () => {
  let servers: MailServers;
  beforeAll(async () => {
    servers = await MailServers.start();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });

  async function open(more: Record<string, unknown> = {}, dataDir?: string) {
    const world = new MailWorld(servers);
    const start = async () => {
      const app = await openWorld("mail", world, {
        more: { allow: [world.ada], ...more },
        ...(dataDir === undefined ? {} : { dataDir }),
      });
      await waitForState(app, "mail", "connected");
      return app;
    };
    const opened = { world, app: await start(), start, [Symbol.asyncDispose]: () => opened.app.stop() };
    return opened;
  }

  const inbound = (app: App) => app.call("GET /api/messages/inbound?page_size=100");

  it("carries a conversation of ten mails with files in both directions, and a restart in the middle", async () => {
    await using folder = await createTempDir();
    await using opened = await open({}, folder.path);
    const { world } = opened;
    let last: ReceivedMail | undefined;
    for (let number = 1; number <= 5; number++) {
      const quote = last === undefined
        ? ""
        : `\n\nOn Fri, 27 Nov 2026 at 10:00, <${world.address}> wrote:\n> ${last.mail.text?.trim()}\n`;
      const file = { name: "заметки 📎.txt", bytes: bytes(`notes ${number}`) };
      await world.say(`say answer ${number}${quote}`, {
        subject: last === undefined ? "Grüße an alle" : "Re: Grüße an alle",
        answers: last,
        files: number === 2 ? [file] : [],
        headers: { "Reply-To": "eve1@other.test", Cc: "bob1@people.test" },
      });
      if (number === 3) {
        await opened.app.stop();
        opened.app = await opened.start();
      }
      if (number === 1) await waitUntil("the first reply", async () => (await world.mails()).length === 1);
      else await world.hears(`answer ${number}`);
      last = (await world.mails()).at(-1);
      if (number !== 4) continue;
      const [{ id }] = await inbound(opened.app);
      await sendFile(opened.app, id, "the report", new File(["what is in it"], "отчёт.txt"));
      last = await world.hears("the report");
    }
    const mails = await world.mails();
    expect(mails.map(({ mail }) => mail.text?.trim().split("\n")[0])).toEqual([
      ...["answer 1", "answer 2", "answer 3", "answer 4", "the report", "answer 5"],
    ]);
    expect(mails.map(({ mail }) => mail.to)).toEqual(
      mails.map(() => expect.objectContaining({ text: world.ada })),
    );
    expect(mails.map(({ mail }) => mail.subject)).toEqual(mails.map(() => "Re: Grüße an alle"));
    expect(mails.some(({ raw }) => /^(Cc|Bcc|Reply-To):/mi.test(raw) || /^>/m.test(raw))).toBe(false);
    const [sent] = mails[4]?.mail.attachments ?? [];
    expect([sent?.filename, sent?.content.toString()]).toEqual(["отчёт.txt", "what is in it"]);
    expect(mails[5]?.mail.references).toContain(mails[0]?.mail.messageId);
    const stored: {
      session_key: string;
      content: string;
      media: { original_name: string; path: string } | null;
    }[] = await inbound(opened.app);
    expect(new Set(stored.map(({ session_key }) => session_key)).size).toBe(1);
    expect(stored.map(({ content }) => content).reverse()).toEqual([
      "say answer 1\n\nSubject: Grüße an alle",
      ...["say answer 2", "say answer 3", "say answer 4", "say answer 5"],
    ]);
    const media = stored.find((one) => one.media !== null)?.media;
    expect(media?.original_name).toBe("заметки 📎.txt");
    expect(await Deno.readTextFile(media?.path ?? "")).toBe("notes 2");
  });

  it("leaves spoofed, automatic, list, bounced and own mail alone, without a pairing code", async () => {
    await using opened = await open();
    const { world, app } = opened;
    const forged = { "Authentication-Results": `mx.agents.test; dmarc=pass header.from=people.test` };
    const eve = world.ada.replace(/^ada(\d+)@.*/, "eve$1@other.test");
    await world.say("say spoofed", { check: "fail" });
    await world.say("say spoofed by envelope", { envelope: eve });
    await world.say("say unchecked", { check: "none" });
    await world.say("say forged", { check: "none", headers: forged });
    await world.say("say forged and failed", { check: "fail", headers: forged });
    await world.say("say a stranger without a pass", { from: eve, check: "fail" });
    await world.say("say two senders", {
      headers: { From: world.ada },
      from: `${eve}, ${world.ada}`,
      envelope: world.ada,
    });
    await world.say("say bounce", { envelope: "" });
    await world.say("say vacation", { headers: { "Auto-Submitted": "auto-replied" } });
    await world.say("say list", { headers: { "List-Id": "<dev.people.test>" } });
    await world.say("say bulk", { headers: { Precedence: "bulk" } });
    await world.say("say own", { from: world.address });
    await world.say("say a copy of its own mail", { messageId: `<svc.${"a".repeat(24)}.0@agents.test>` });
    await world.delivered(13);
    await world.say("say heard");
    await world.hears("heard");
    await app.settle();
    expect((await inbound(app)).map(({ content }: { content: string }) => content)).toEqual(["say heard"]);
    expect(await world.texts()).toEqual(["heard"]);
    expect(await world.mails(eve)).toEqual([]);
    expect(await app.call("GET /api/messages/outbound")).toHaveLength(1);
  });

  it("gives a verified stranger a code, and hears them after pairing", async () => {
    await using opened = await open({ allow: [] });
    const { world, app } = opened;
    await world.say("say let me in");
    await waitUntil("a code", async () => (await world.texts()).some((text) => CODE.test(text)));
    const [answer] = await world.mails();
    const [code] = CODE.exec(answer?.mail.text ?? "") ?? [];
    expect(await inbound(app)).toEqual([]);
    await app.call("POST /api/platforms/pair", { code, sender: world.ada });
    await world.say("say thanks", { answers: answer });
    await world.hears("thanks");
  });

  it("keeps the conversations of two people in one thread apart", async () => {
    await using opened = await open({ allow: ["*"] });
    const { world, app } = opened;
    const bob = world.ada.replace("ada", "bob");
    await world.say("say for ada");
    const reply = await world.hears("for ada");
    await world.say("say for bob", { from: bob, answers: reply });
    await world.hears("for bob", bob);
    const keys = new Set((await inbound(app)).map(({ session_key }: { session_key: string }) => session_key));
    expect(keys.size).toBe(2);
    expect(await world.texts()).toEqual(["for ada"]);
  });

  it("asks a question with numbers, and takes the answer to it", async () => {
    await using opened = await open();
    const { world, app } = opened;
    await world.say("say begun");
    await world.hears("begun");
    await app.settle();
    const [{ id: message_id }] = await inbound(app);
    const ask = (text: string) =>
      app.call("POST /api/questions", { message_id, text, options: ["Yes", "No"] });
    const first = await ask("Deploy?");
    const second = await ask("Delete?");
    const find = async () => (await world.mails()).find(({ mail }) => mail.text?.startsWith("Deploy?"));
    await waitUntil("the questions", async () => (await world.mails()).length === 3);
    await world.say("2", { answers: await find() });
    await waitUntil(
      "the answer",
      async () => (await app.call(`GET /api/questions/${first.id}`)).answer === "No",
    );
    expect(await app.call(`GET /api/questions/${second.id}`)).toMatchObject({ status: "open" });
  });

  it("reads HTML as text, and names what it can't read", async () => {
    await using opened = await open();
    const { world, app } = opened;
    const html = "<style>p{}</style><p>say <b>from</b> HTML</p><blockquote>quoted</blockquote>";
    const raw = (head: string, body: string) =>
      `From: ${world.ada}\r\nTo: ${world.address}\r\nMIME-Version: 1.0\r\n${head}\r\n\r\n${body}\r\n`;
    await world.sendRaw(raw("Content-Type: text/html; charset=utf-8", html));
    await world.hears("from HTML");
    const parts = Array.from(
      { length: 150 },
      (_, at) => `--b\r\nContent-Type: text/plain\r\n\r\npart ${at}\r\n`,
    ).join("");
    await world.sendRaw(raw("Content-Type: multipart/mixed; boundary=b", `${parts}--b--`));
    await waitUntil(
      "a notice",
      async () => (await world.texts()).some((text) => /^Cannot read a mail of this form/.test(text)),
    );
    await app.settle();
    await world.say("say later");
    await world.hears("later");
  });

  it("denies a tool call of an agent that asks, without a notice that reaches a person (contract 23)", async () => {
    await using folder = await createTempDir();
    const world = new MailWorld(servers);
    const mail = { ...world.config, worker: "Ada", allow: [world.ada] };
    const engines = { default: "claude", claude: await writeAskingClaude(folder.path) };
    await using app = await openPlatforms({ mail }, { dataDir: folder.path, config: { engines } as never });
    await waitForState(app, "mail", "connected");
    await world.say(`call Write ${folder.path}/file`);
    await waitUntil("the reply", async () => (await world.texts()).length === 1);
    expect((await app.call("GET /api/executions"))[0].result).toMatch(/nobody can be asked here/);
    expect(await app.call("GET /api/questions")).toEqual([]);
  });

  it("reports a refused login without the password", async () => {
    const world = new MailWorld(servers);
    const wrong = { ...world.config.imap, password: "wrong-secret" };
    await using app = await openWorld("mail", world, { more: { imap: wrong } });
    await waitForState(app, "mail", "refused");
    const check = await readPlatformCheck(app);
    expect(check).toMatchObject({ status: "warn", detail: expect.stringMatching(/IMAP refuses the login/) });
    const tested = await app.call("POST /api/platforms/mail/test");
    expect(tested).toMatchObject({ ok: false });
    const config = await app.call("GET /api/system/config");
    expect(JSON.stringify([check, tested, config])).not.toMatch(/wrong-secret|mail-secret/);
  });
});
