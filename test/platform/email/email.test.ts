import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { MAIL_SERVERS_MISSING, MailServers } from "../fakes/mail_servers.ts";
import { MailWorld } from "../worlds/mail.ts";
import { openWorld, waitForState } from "../worlds/open.ts";

describe.skipIf(MAIL_SERVERS_MISSING !== "")("a mailbox on Dovecot and Postfix [MAI-1]", () => {
  let servers: MailServers;
  beforeAll(async () => {
    servers = await MailServers.start();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });

  async function open(more: Record<string, unknown> = {}) {
    const world = new MailWorld(servers);
    const app = await openWorld("mail", world, { more: { allow: [world.ada], ...more } });
    await waitForState(app, "mail", "connected");
    return { world, app, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
  }

  it("answers a mail in its thread, and quotes nothing", async () => {
    await using opened = await open();
    const { world, app } = opened;
    const id = await world.say("say hello", {
      subject: "Greetings",
      headers: { "Reply-To": "eve@other.test" },
    });
    const { mail } = await world.hears("hello");
    expect(mail).toMatchObject({ subject: "Re: Greetings", inReplyTo: id, references: id });
    expect(await app.call("GET /api/messages/inbound")).toMatchObject([{
      sender: world.ada,
      content: "say hello",
    }]);
  });
});
