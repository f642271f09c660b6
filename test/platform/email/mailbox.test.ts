// New mail, lost connections and new numbers of a mailbox.
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFastClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";
import { MAIL_SERVERS_MISSING, MailServers } from "../fakes/mail_servers.ts";
import { MailWorld } from "../worlds/mail.ts";
import { createPlatform, startPlatform } from "../worlds/open.ts";

describe.skipIf(MAIL_SERVERS_MISSING !== "")("the mails of a mailbox [MAI-1]", () => {
  let servers: MailServers;
  beforeAll(async () => {
    servers = await MailServers.start();
  });
  afterAll(async () => {
    await servers?.[Symbol.asyncDispose]();
  });

  it("continues after the server ended, and reads no mail again in a mailbox with new numbers", async () => {
    const world = new MailWorld(servers);
    const position = { text: "" };
    const came: string[] = [];
    const platform = await createPlatform(world.config);
    platform.start(
      (incoming) => {
        came.push(incoming.text);
        return Promise.resolve({ outcome: "queued", message_id: "m" });
      },
      () => Promise.resolve([]),
      {
        find: () => Promise.resolve(position.text),
        save: (text) => Promise.resolve(void (position.text = text)),
      },
    );
    const isConnected = () => platform.health().state === "connected";
    await waitUntil("it is connected", isConnected);
    for (const text of ["one", "two"]) await world.say(text);
    await waitUntil("both arrive", () => came.length === 2);
    await servers.stopDovecot();
    await waitUntil("it notices", () => !isConnected());
    const { validity } = JSON.parse(position.text);
    const mailbox = world.folderOf(world.address);
    for (const { name } of [...Deno.readDirSync(mailbox)]) {
      if (name.startsWith("dovecot")) await Deno.remove(join(mailbox, name));
    }
    await world.say("three");
    await world.delivered(3);
    await servers.startDovecot();
    await waitUntil("the third arrives", () => came.length >= 3);
    await world.say("four");
    await waitUntil("the fourth arrives", () => came.length >= 4);
    expect(came).toEqual(["one", "two", "three", "four"]);
    expect(JSON.parse(position.text).validity).not.toBe(validity);
    await platform.stop();
  });

  it("asks a server without IDLE for new mail", async () => {
    await servers.stopDovecot();
    servers.capabilities = "IMAP4rev1 LITERAL+ UIDPLUS SPECIAL-USE";
    await servers.startDovecot();
    const world = new MailWorld(servers);
    await using started = await startPlatform(world, { clock: createFastClock(20) });
    await world.say("found by asking");
    await waitUntil("it arrives", () => started.texts().some((text) => text.includes("found by asking")));
    servers.capabilities = "";
    await servers.stopDovecot();
    await servers.startDovecot();
  });
});
