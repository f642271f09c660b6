// Kills, restarts and lost connections between the service and real mail servers.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildFakeEnvironment } from "../../harness/fakes/agents.ts";
import { type Client, openClient } from "../../harness/service/client.ts";
import { createTempDir, type ServerProcess, startServer } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { MAIL_SERVERS_MISSING, MailServers } from "../fakes/mail_servers.ts";
import { MailWorld } from "../worlds/mail.ts";
import { createPlatform } from "../worlds/open.ts";

describe.skipIf(MAIL_SERVERS_MISSING !== "")("a mailbox in trouble [MAI-1]", () => {
  let servers: MailServers;
  beforeAll(async () => {
    servers = await MailServers.start();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });

  /** Starts a service as a process. */
  async function start(world: MailWorld, folder: string, more: Record<string, unknown> = {}, env = {}) {
    const config = join(folder, "svc.yaml");
    const mail = { ...world.config, worker: "Ada", allow: [world.ada], ...more };
    await Deno.writeTextFile(config, JSON.stringify({ platforms: { mail } }));
    const server = await startServer({
      dataDir: folder,
      args: ["-c", config],
      env: { ...buildFakeEnvironment(), ...env },
    });
    const api = await openClient(server.url);
    await api.send("POST /api/workers", { name: "Ada" });
    await waitUntil("it is connected", async () => {
      return (await api.call("GET /api/platforms/mail")).state === "connected";
    });
    return { server, api, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }

  const readReplies = (api: Client) => api.call("GET /api/messages/outbound");
  const count = async (world: MailWorld, text: string) =>
    (await world.texts()).filter((one) => one === text).length;

  it("finds a reply among the sent mails after a kill between SMTP and its mark", async () => {
    await using folder = await createTempDir();
    const world = new MailWorld(servers);
    await using killed = await start(world, folder.path, {}, { SVC_FAULT: "outbox.post:1:kill" });
    await world.say("say once");
    await killed.server.ended;
    await using again = await start(world, folder.path);
    await waitUntil("it is sent", async () => (await readReplies(again.api))[0]?.status === "sent");
    await world.say("say last");
    await world.hears("last");
    expect(await count(world, "once")).toBe(1);
  });

  it("says that a reply may have arrived after a kill before its copy, and sends it again only by hand", async () => {
    await using folder = await createTempDir();
    const world = new MailWorld(servers);
    let victim: ServerProcess | null = null;
    // Kills the service while the response to the mail is on its way.
    using relay = startRelay(servers.ports.submission, (text) => {
      if (/^250 2\.0\.0 Ok: queued/m.test(text)) victim?.child.kill("SIGKILL");
      return victim === null || !/queued/.test(text);
    });
    const smtp = { ...world.config.smtp, port: relay.port };
    await using killed = await start(world, folder.path, { smtp });
    victim = killed.server;
    await world.say("say in doubt");
    await killed.server.ended;
    await world.hears("in doubt");
    await using again = await start(world, folder.path);
    const find = async () => (await readReplies(again.api))[0];
    await waitUntil(
      "the service gives it up",
      async () => (await find())?.error.includes("may have arrived"),
    );
    expect(await find()).toMatchObject({ status: "failed", next_attempt_at: null });
    expect(await count(world, "in doubt")).toBe(1);
    await again.api.call(`POST /api/messages/${(await find()).id}/resend`, {});
    await waitUntil("the second mail", async () => await count(world, "in doubt") === 2);
    const ids = new Set((await world.mails()).map(({ mail }) => mail.messageId));
    expect(ids.size).toBe(1);
  });

  it("loses no mail and repeats none over kills, and reads what arrived meanwhile", async () => {
    await using folder = await createTempDir();
    const world = new MailWorld(servers);
    const said: string[] = [];
    for (let round = 0; round < 2; round++) {
      await using running = await start(world, folder.path);
      for (let mail = 0; mail < 3; mail++) said.push(await world.say(`say number ${said.length}`));
      if (round > 0) {
        await waitUntil("one is stored", async () => {
          return (await running.api.call("GET /api/messages/inbound?page_size=100")).length > round * 3;
        });
      }
      await running.server.end("SIGKILL");
      said.push(await world.say(`say number ${said.length}`));
    }
    await using last = await start(world, folder.path);
    const stored = async () => {
      const all: { content: string }[] = await last.api.call("GET /api/messages/inbound?page_size=100");
      return all.map(({ content }) => content).sort();
    };
    const expected = said.map((_, at) => `say number ${at}`).sort();
    await waitUntil("all are stored", async () => (await stored()).length >= said.length);
    expect(await stored()).toEqual(expected);
  });

  it("reads a server with TLS only when it trusts the certificate, by either way", async () => {
    const { imaps, imap, submission, submissions } = servers.ports;
    const ways = [["implicit", imaps, submissions], ["starttls", imap, submission]] as const;
    for (const [tls, imapPort, smtpPort] of ways) {
      await using folder = await createTempDir();
      const world = new MailWorld(servers);
      const more = {
        imap: { ...world.config.imap, host: "localhost", tls, port: imapPort },
        smtp: { ...world.config.smtp, host: "localhost", tls, port: smtpPort },
      };
      const refused = await createPlatform({ ...world.config, ...more });
      await expect(refused.test()).rejects.toThrow(/Cannot reach IMAP: .*certificate/i);
      await using running = await start(world, folder.path, more, { DENO_CERT: servers.authority });
      await world.say(`say by ${tls}`);
      await world.hears(`by ${tls}`);
      expect(await running.api.call("POST /api/platforms/mail/test")).toMatchObject({ ok: true });
    }
  });
});

/** Passes connections on to a port. `pass` sees the text of the server, and returns whether it goes to the client. */
function startRelay(port: number, pass: (text: string) => boolean): { port: number } & Disposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const decoder = new TextDecoder();
  const copy = async (from: Deno.Conn, to: Deno.Conn, check: (text: string) => boolean) => {
    for await (const chunk of from.readable) {
      if (check(decoder.decode(chunk))) await to.write(chunk);
    }
    to.close();
  };
  void (async () => {
    for await (const client of listener) {
      const server = await Deno.connect({ hostname: "127.0.0.1", port });
      copy(client, server, () => true).catch(() => {});
      copy(server, client, pass).catch(() => {});
    }
  })().catch(() => {});
  return { port: listener.addr.port, [Symbol.dispose]: () => listener.close() };
}
