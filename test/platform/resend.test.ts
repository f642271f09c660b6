import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { startRun } from "../harness/service/run.ts";
import { ctl } from "../harness/terminal.ts";
import { waitUntil } from "../harness/wait.ts";
import { Receiver, SECRET } from "./fakes/receiver.ts";
import { openPlatforms, readReply } from "./worlds/open.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Opens a service whose replies go to a receiver, with one clock for both. */
async function open() {
  const clock = new TestClock();
  const receiver = new Receiver(SECRET, () => clock.now());
  const hook = { kind: "webhook", worker: "Ada", secret: SECRET, allow_private: true };
  const app = await openPlatforms({ alerts: { ...hook, reply_url: receiver.url } }, { clock });
  return {
    clock,
    receiver,
    app,
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
    },
  };
}

const say = (app: App, text: string, id: string) =>
  app.call("POST /hooks/alerts", { text: `say ${text}`, id });
const outbound = (app: App) => app.call("GET /api/messages/outbound");
const texts = ({ got }: Receiver) => got.map(({ body }) => body.data.text);

describe("message resend (contract 10.3)", () => {
  it("sends a refused message again, once, before waiting ones; a repetition changes nothing, and the journal names the person", async () => {
    await using opened = await open();
    const { clock, receiver, app } = opened;
    receiver.modes.push(422);
    await say(app, "first", "m1");
    await app.settle();
    const given = await readReply(app);
    expect(given).toMatchObject({ status: "failed", next_attempt_at: null, attempt: 1 });
    receiver.modes.push(503);
    await say(app, "second", "m2");
    await waitUntil("the reply waits", async () => (await readReply(app)).error === "reply_url answered 503");
    const headers = { "idempotency-key": "again" };
    const resent = await app.call(`POST /api/messages/${given.id}/resend`, {}, headers);
    expect(resent).toMatchObject({ id: given.id, status: "failed", error: "", next_attempt_at: clock.now() });
    expect(await app.call(`POST /api/messages/${given.id}/resend`, {}, headers)).toEqual(resent);
    // Also without a key, since the message waits already.
    expect(await app.call(`POST /api/messages/${given.id}/resend`, {})).toMatchObject({ status: "failed" });
    clock.advance(300_000);
    await app.until("message.sent", 2);
    expect(texts(receiver)).toEqual(["first", "second", "first", "second"]);
    // The key for the platform is the same as before.
    expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(2);
    const events = await app.db.read("select actor, data from journal where kind = 'message.resent'");
    expect(events).toEqual([{ actor: "user:admin", data: JSON.stringify({ outbound_id: given.id }) }]);
    const late = await app.send(`POST /api/messages/${given.id}/resend`, {});
    expect([late.status, late.body.code]).toEqual([409, "conflict"]);
    const unknown = await app.send("POST /api/messages/nothing/resend", {});
    expect(unknown.status).toBe(404);
  });

  it("gives a message that may have arrived all its tries again, and one that waited 7 days another 7", async () => {
    await using opened = await open();
    const { clock, receiver, app } = opened;
    receiver.modes.push("lost", "lost");
    await say(app, "in doubt", "m1");
    await app.settle();
    const doubt = await readReply(app);
    expect(doubt).toMatchObject({
      next_attempt_at: null,
      error: expect.stringContaining("may have arrived"),
    });
    receiver.modes.push("lost");
    await app.call(`POST /api/messages/${doubt.id}/resend`, {});
    await app.until("message.sent");
    expect(texts(receiver)).toEqual(["in doubt", "in doubt", "in doubt", "in doubt"]);

    receiver.otherwise = 503;
    await say(app, "away", "m2");
    await waitUntil("the reply waits", async () => (await readReply(app)).error !== "");
    // The clock stops during a try, since the receiver checks the time of signatures.
    for (let day = 1; day <= 7; day++) {
      // Otherwise the service could store the try with the time of the next day.
      await waitUntil(
        "the try is stored",
        async () => (await readReply(app)).next_attempt_at > clock.now(),
      );
      const tries = receiver.got.length;
      clock.advance(DAY_MS);
      await waitUntil("another try", () => receiver.got.length > tries);
    }
    await waitUntil(
      "the service gives the reply up",
      async () => (await readReply(app)).next_attempt_at === null,
    );
    expect((await readReply(app)).error).toContain("after 7 days");
    const tried = receiver.got.length;
    const sent = await ctl(app, [
      "message",
      "resend",
      "--platform",
      "alerts",
      "--since",
      "2000-01-01T00:00:00Z",
      "-q",
    ]);
    expect([sent.code, sent.out]).toEqual([0, "1\n"]);
    clock.advance(300_000);
    await waitUntil("the reply is sent again", () => receiver.got.length > tried);
    await waitUntil("the reply waits again", async () => (await readReply(app)).error !== "");
    expect((await readReply(app)).next_attempt_at).not.toBe(null);
    receiver.otherwise = "ok";
    clock.advance(300_000);
    await app.until("message.sent", 2);
    expect(receiver.faults).toEqual([]);
  });

  it("sends all messages of a platform since a time, and no others; ctl accepts the end of an id", async () => {
    await using opened = await open();
    const { clock, receiver, app } = opened;
    receiver.otherwise = 422;
    await say(app, "old", "m1");
    await app.settle();
    clock.advance(60_000);
    const since = clock.now();
    for (const id of ["m2", "m3"]) {
      await say(app, id, id);
      await app.settle();
    }
    receiver.otherwise = "ok";
    receiver.got.length = 0;
    expect((await app.send("POST /api/messages/resend", { platform: "phone" })).status).toBe(409);
    expect(await app.call("POST /api/messages/resend", { platform: "local" })).toEqual({
      resent: 0,
      more: false,
    });
    expect(await app.call("POST /api/messages/resend", { platform: "alerts", since })).toEqual({
      resent: 2,
      more: false,
    });
    await app.until("message.sent", 2);
    expect(texts(receiver)).toEqual(["m2", "m3"]);
    const old = (await outbound(app)).at(-1).id;
    const { code } = await ctl(app, ["message", "resend", old.slice(-8)]);
    expect(code).toBe(0);
    await app.until("message.sent", 3);
    expect(texts(receiver)).toEqual(["m2", "m3", "old"]);
    expect((await ctl(app, ["message", "resend"])).code).toBe(2);
    expect((await ctl(app, ["message", "resend", old, "--platform", "alerts"])).code).toBe(2);
  });

  it("is refused to runs", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["*:*"]);
    for (const path of ["/api/messages/x/resend", "/api/messages/resend"]) {
      const refused = await app.send(`POST ${path}`, { platform: "local" }, run.headers);
      expect(refused.status).toBe(403);
    }
  });

  it("sends no other message that may have arrived a third time [PLT-2]", async () => {
    await using opened = await open();
    const { clock, receiver, app } = opened;
    receiver.modes.push(422);
    await say(app, "refused", "m1");
    await app.settle();
    receiver.modes.push("lost", 503);
    await say(app, "doubt", "m2");
    await waitUntil(
      "the reply waits",
      async () => (await readReply(app)).error === "reply_url answered 503",
    );
    receiver.modes.push("ok", "lost");
    await app.call(`POST /api/messages/${(await outbound(app))[1].id}/resend`, {});
    clock.advance(300_000);
    await waitUntil(
      "the service gives the reply up",
      async () => (await readReply(app)).error.includes("may have arrived"),
    );
    expect(texts(receiver).filter((text) => text === "doubt")).toHaveLength(3);
  });
});
