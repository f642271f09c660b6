import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DeliveryError } from "../../src/platform/platform.ts";
import type { App, TestSettings } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { Receiver, SECRET, sign } from "./fakes/receiver.ts";
import { openPlatforms, readReply } from "./worlds/open.ts";

type Hook = Record<string, unknown>;

interface Options {
  clock?: TestClock;
  dataDir?: string;
  config?: TestSettings;
}

const open = (hook: Hook = {}, options: Options = {}) =>
  openPlatforms({ alerts: { kind: "webhook", worker: "Ada", secret: SECRET, ...hook } }, options);

const receive = (clock: TestClock) => new Receiver(SECRET, () => clock.now());

/** Sends a webhook with these headers. */
async function post(app: App, body: string, headers: Record<string, string>, name = "alerts") {
  const response = await app.server.fetch(
    new Request(`http://localhost/hooks/${name}`, { method: "POST", body, headers }),
  );
  return { status: response.status, body: await response.json() };
}

const listReplies = ({ got }: Receiver) => got.map(({ body }) => body.data.text);

async function rows(app: App): Promise<number> {
  return (await app.db.first<{ rows: number }>("select count(*) as rows from inbound_message"))?.rows ?? 0;
}

describe("POST /hooks/:name (contract 10.5)", () => {
  it("passes a message to its worker unchanged, and answers 202 with the id [WHK-1]", async () => {
    await using app = await open();
    await app.call("POST /api/workers", { name: "Bob" });
    const text = "/stop @Bob say hello";
    const body = JSON.stringify({ text, conversation: "ops", sender: "cron" });
    const reply = await post(app, body, sign(body, "m1"));
    expect(reply).toEqual({ status: 202, body: { status: "queued", message_id: expect.any(String) } });
    await app.settle();
    const [task] = await app.call("GET /api/queue").then(() =>
      app.db.read(
        "select instruction, session_key, worker.name from task join worker on worker.id = worker_id",
      )
    );
    expect(task).toEqual({ instruction: text, session_key: "alerts:ops", name: "Ada" });
    const [message] = await app.call("GET /api/messages/inbound?platform=alerts");
    expect(message).toMatchObject({ platform_message_id: "ops:m1", sender: "cron", sender_name: "cron" });
  });

  it("accepts nothing for a disabled webhook", async () => {
    await using app = await open({ enabled: false });
    const body = JSON.stringify({ text: "hello" });
    expect((await post(app, body, sign(body, "a"))).status).toBe(404);
    expect((await app.send("POST /hooks/alerts", { id: "a", text: "hello" })).status).toBe(404);
    expect(await rows(app)).toBe(0);
  });

  it("stores a repeated id once, and answers the id of the first message [WHK-1]", async () => {
    await using app = await open();
    const body = JSON.stringify({ text: "hello" });
    const first = await post(app, body, sign(body, "same"));
    const again = await post(app, body, sign(body, "same", Date.now() + 2_000));
    expect(again).toEqual(first);
    expect(await rows(app)).toBe(1);
  });

  it("refuses forged and old messages, and those from the future or for another secret [WHK-1]", async () => {
    await using app = await open();
    const body = JSON.stringify({ text: "hello" });
    const good = sign(body, "a");
    const sent = good["webhook-signature"] ?? "";
    const now = Date.now();
    const forged: [string, string, Record<string, string>][] = [
      ["no signature", body, { "content-type": "application/json" }],
      ["another body", `${body} `, good],
      ["another id", body, { ...good, "webhook-id": "b" }],
      ["another time", body, { ...good, "webhook-timestamp": String(Math.floor(now / 1000) + 1) }],
      ["old", body, sign(body, "a", now - 310_000)],
      ["from the future", body, sign(body, "a", now + 400_000)],
      ["another secret", body, sign(body, "a", now, `whsec_${btoa("x".repeat(32))}`)],
      ["another version", body, {
        ...good,
        "webhook-signature": sent.replace("v1,", "v2,"),
      }],
      ["an empty signature", body, { ...good, "webhook-signature": "v1," }],
      ["a shortened signature", body, {
        ...good,
        "webhook-signature": sent.slice(0, -8),
      }],
      ["no time", body, { ...good, "webhook-timestamp": "" }],
      ["time as words", body, { ...good, "webhook-timestamp": "now" }],
      ["the id moved into the time", body, { ...good, "webhook-id": "a.1" }],
      ["a wrong token", body, { "content-type": "application/json", authorization: "Bearer nothing" }],
    ];
    for (const [what, text, headers] of forged) {
      expect([what, (await post(app, text, headers)).status]).toEqual([what, 401]);
    }
    expect(await rows(app)).toBe(0);
    // A sender that rotates its secret sends several signatures. One valid signature is enough.
    const both = { ...good, "webhook-signature": `v1,AAAA v2,BBBB ${good["webhook-signature"]}` };
    expect((await post(app, body, both)).status).toBe(202);
  });

  it("accepts GitHub's signature, and a replay with another delivery id is the same message [WHK-1]", async () => {
    const secret = "github's own";
    const hook = {
      secret,
      hmac: "github",
      template: "{{/action}}: {{/issue/title}}",
      conversation: "{{/repo}}",
    };
    await using app = await open(hook);
    const body = JSON.stringify({ action: "opened", repo: "a/b", issue: { title: "{{/repo}} $& @Ada" } });
    const headers = (delivery: string, text = body) => ({
      "content-type": "application/json",
      "x-github-delivery": delivery,
      "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(text).digest("hex")}`,
    });
    expect((await post(app, body, headers("d1"))).status).toBe(202);
    expect((await post(app, body, headers("d2"))).status).toBe(202);
    const unnamed = { ...headers(""), "webhook-id": "new" };
    expect((await post(app, body, unnamed)).status).toBe(202);
    expect((await post(app, `${body} `, headers("d3"))).status).toBe(401);
    expect((await post(app, "{}", headers("d4", "{}"))).body.detail).toContain("/repo");
    const form = `payload=${encodeURIComponent(JSON.stringify({ ...JSON.parse(body), n: 2 }))}`;
    const asForm = { ...headers("d5", form), "content-type": "application/x-www-form-urlencoded" };
    expect((await post(app, form, asForm)).status).toBe(202);
    const messages = await app.call("GET /api/messages/inbound");
    // The template does not expand inserted text.
    expect(messages.map(({ content, session_key }: Hook) => [content, session_key])).toEqual([
      ["opened: {{/repo}} $& @Ada", "alerts:a/b"],
      ["opened: {{/repo}} $& @Ada", "alerts:a/b"],
    ]);
  });

  it("accepts Slack's signature, and answers its challenge [WHK-1]", async () => {
    const secret = "slack's own";
    await using app = await open({ secret, hmac: "slack", template: "{{/event/text}}" });
    const headers = (body: string, at = Date.now()) => {
      const time = String(Math.floor(at / 1000));
      const mac = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
      return {
        "content-type": "application/json",
        "x-slack-request-timestamp": time,
        "x-slack-signature": `v0=${mac}`,
      };
    };
    const challenge = JSON.stringify({ type: "url_verification", challenge: "c1" });
    expect((await post(app, challenge, headers(challenge))).body).toEqual({ challenge: "c1" });
    const body = JSON.stringify({ event_id: "E1", event: { text: "hi" } });
    expect((await post(app, body, headers(body))).status).toBe(202);
    expect((await post(app, body, headers(body, Date.now() - 2_000))).status).toBe(202);
    expect((await post(app, body, headers(body, Date.now() - 310_000))).status).toBe(401);
    expect(await rows(app)).toBe(1);
  });

  it("accepts a token with write:hooks, and no other", async () => {
    await using app = await open({ secret: "" });
    const body = JSON.stringify({ text: "hi", id: 7 });
    const tokenOf = async (scope: string) => {
      const made = await app.call("POST /api/tokens", { name: scope, scopes: [scope] });
      return { "content-type": "application/json", authorization: `Bearer ${made.token}` };
    };
    expect((await post(app, body, await tokenOf("write:messages"))).status).toBe(403);
    expect((await post(app, body, await tokenOf("write:hooks"))).status).toBe(202);
    expect((await post(app, body, await tokenOf("read:hooks"))).status).toBe(403);
    expect((await post(app, body, { "content-type": "application/json" })).status).toBe(401);
    expect((await post(app, body, await tokenOf("write:*"), "nothing")).status).toBe(404);
    expect(await app.db.first("select actor, address from journal where kind = 'message.received'")).toEqual({
      actor: "token:write:hooks",
      address: "127.0.0.1",
    });
  });

  it("refuses a body without id, text or JSON, and messages above the limit", async () => {
    await using app = await open({}, {
      config: { limits: { max_waiting_messages: 2 }, bee: { quiet_window: "1h" } },
    });
    const send = (body: string, id = "x", more = {}) => post(app, body, { ...sign(body, id), ...more });
    expect((await send("{}")).status).toBe(400);
    expect((await send("no json")).status).toBe(400);
    expect((await send(JSON.stringify({ text: "hi", more: 1 }))).status).toBe(400);
    expect((await send(JSON.stringify({ text: "hi" }), "i".repeat(101))).status).toBe(400);
    const token = await app.call("POST /api/tokens", { name: "t", scopes: ["write:hooks"] });
    const noId = { "content-type": "application/json", authorization: `Bearer ${token.token}` };
    expect((await post(app, JSON.stringify({ text: "hi" }), noId)).body.detail).toContain("id: is missing");
    for (const [id, status] of [["1", 202], ["2", 202], ["3", 429], ["4", 429]] as const) {
      expect((await send(JSON.stringify({ text: "hi" }), id)).status).toBe(status);
    }
    // Stored as failed, with one notice.
    const failed = await app.call("GET /api/messages/inbound?status=failed");
    expect(failed).toHaveLength(2);
    expect(await app.call("GET /api/messages/outbound")).toHaveLength(1);
  });
});

it("a webhook that was refused because of the limit is accepted when it comes again (contract 10.1, contract 10.5)", async () => {
  const clock = new TestClock();
  const config = { limits: { max_waiting_messages: 1 }, bee: { quiet_window: "10s" } };
  await using app = await open({}, { clock, config });
  const send = async (id: string) => {
    const body = JSON.stringify({ text: `say ${id}` });
    return await post(app, body, sign(body, id, clock.now()));
  };
  expect((await send("a")).status).toBe(202);
  // Refused again while the limit lasts.
  for (let i = 0; i < 3; i++) expect((await send("b")).status).toBe(429);
  expect(await rows(app)).toBe(2);
  clock.advance(10_000);
  await app.until("task.completed");
  const taken = await send("b");
  expect(taken.status).toBe(202);
  clock.advance(10_000);
  await app.until("task.completed", 2);
  expect(await send("b")).toEqual(taken);
  const [b, a] = await app.call("GET /api/messages/inbound?platform=alerts");
  expect([a.status, b.status, b.id]).toEqual(["bee_processed", "bee_processed", taken.body.message_id]);
});

/** Counts the rounds of the outbox. */
const countRounds = (app: App) => app.server.stages.find(({ name }) => name === "outbox")?.rounds ?? 0;

describe("replies to reply_url (contract 10.3)", () => {
  const to = (receiver: Receiver) => ({ reply_url: receiver.url, allow_private: true });

  async function say(app: App, text: string, id: string, conversation = "main"): Promise<void> {
    const body = JSON.stringify({ text, conversation });
    expect((await post(app, body, sign(body, id, app.server.parts.clock.now()))).status).toBe(202);
  }

  it("are signed, in order in each conversation, and verified by the npm package", async () => {
    await using receiver = new Receiver();
    await using app = await open(to(receiver));
    for (let i = 0; i < 5; i++) {
      await say(app, `say ${i}`, `m${i}`);
      await app.settle();
    }
    expect(receiver.faults).toEqual([]);
    expect(listReplies(receiver)).toEqual(["0", "1", "2", "3", "4"]);
    expect(receiver.got[0]?.body).toMatchObject({
      type: "message.reply",
      data: { platform: "alerts", conversation: "main", answers: "m0" },
    });
    expect(await readReply(app)).toMatchObject({ status: "sent", next_attempt_at: null });
  });

  it("are sent again once with the same id after a lost answer, and never a third time [PLT-2]", async () => {
    await using receiver = new Receiver();
    await using app = await open(to(receiver));
    receiver.modes.push("lost", "ok", "lost", "lost");
    await say(app, "say first", "m1");
    await app.settle();
    expect(receiver.got.map(({ id, body }) => [id, body.data.text])).toEqual([
      [receiver.got[0]?.id, "first"],
      [receiver.got[0]?.id, "first"],
    ]);
    await say(app, "say second", "m2");
    await app.settle();
    await say(app, "say third", "m3");
    await app.settle();
    expect(listReplies(receiver)).toEqual([
      "first",
      "first",
      "second",
      "second",
      "third",
    ]);
    const [third, second, first] = await app.call("GET /api/messages/outbound");
    expect([first.status, second.status, third.status]).toEqual(["sent", "failed", "sent"]);
    expect(second).toMatchObject({
      next_attempt_at: null,
      error: expect.stringContaining("may have arrived"),
    });
  });

  it("are not sent again while the receiver is silent: they wait [PLT-3]", async () => {
    const clock = new TestClock();
    await using receiver = receive(clock);
    await using app = await open(to(receiver), { clock });
    const platform = app.server.parts.platforms.get("alerts")?.platform;
    if (platform === undefined || platform === null) throw new Error("it is not there");
    const { test } = platform;
    platform.test = () => Promise.reject(new DeliveryError("unanswered", "it is silent"));
    receiver.modes.push("lost");
    await say(app, "say first", "m1");
    await waitUntil("the reply waits", async () => (await readReply(app))?.error === "it is silent");
    expect(await readReply(app)).toMatchObject({ attempt: 0, next_attempt_at: expect.any(Number) });
    expect(receiver.got).toHaveLength(1);
    platform.test = test;
    await waitUntil("it arrives", () => {
      clock.advance(1_000);
      return receiver.got.length === 2;
    });
    await app.until("message.sent");
  });

  it("are sent again when the store of their arrival fails, and the conversation continues [PLT-2]", async () => {
    await using receiver = new Receiver();
    await using app = await open(to(receiver));
    const write = app.db.write.bind(app.db);
    let full = true;
    app.db.write = (statements) => {
      const isOutcome = statements.some(({ sql }) => sql.includes("sent_as = ?"));
      if (!full || !isOutcome) return write(statements);
      full = false;
      return Promise.reject(new Error("the disk is full"));
    };
    await say(app, "say first", "m1");
    await waitUntil("the reply is sent", () => receiver.got.length > 0);
    await say(app, "say second", "m2");
    await app.until("message.sent", 2);
    expect(listReplies(receiver)).toEqual(["first", "first", "second"]);
    expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(2);
  });

  it("wait in order and without an attempt while the receiver is down for a night [PLT-3]", async () => {
    const clock = new TestClock();
    await using receiver = receive(clock);
    await using app = await open(to(receiver), { clock });
    await receiver.goAway();
    for (let i = 0; i < 3; i++) {
      await say(app, `say ${i}`, `m${i}`, i === 2 ? "other" : "main");
      await app.until("task.completed", i + 1);
    }
    const held = () => app.call("GET /api/messages/outbound");
    await waitUntil("the replies wait", async () => (await held()).some((one: Hook) => one.error !== ""));
    for (let minute = 0; minute < 8 * 60; minute += 10) {
      const rounds = countRounds(app);
      clock.advance(10 * 60_000);
      await waitUntil("another round", () => countRounds(app) > rounds);
    }
    for (const message of await held()) {
      expect(message).toMatchObject({ status: "failed", attempt: 0, next_attempt_at: expect.any(Number) });
    }
    receiver.comeBack();
    await waitUntil("all arrive", () => {
      clock.advance(60_000);
      return receiver.got.length >= 3;
    });
    expect(
      receiver.got.filter(({ body }) => body.data.conversation === "main").map(({ body }) => body.data.text),
    )
      .toEqual(["0", "1"]);
    expect(receiver.faults).toEqual([]);
  });

  it("are sent again when the service ended during the send, and fail after the second time [PLT-2]", async () => {
    await using receiver = new Receiver();
    await using folder = await createTempDir();
    const start = () => open(to(receiver), { dataDir: folder.path });
    await receiver.goAway();
    {
      await using app = await start();
      await say(app, "say once", "m1", "one");
      await say(app, "say twice", "m2", "two");
      await app.until("message.undelivered", 2);
      // No delivery runs now: both messages wait for the next try.
      await waitUntil("both wait", async () => {
        const [row] = await app.db.read<{ count: number }>(
          `select count(*) as count from outbound_message join outbound_part on outbound_id = id
          where sending_at is null and due_at > ?`,
          [Date.now()],
        );
        return row?.count === 2;
      });
      const kill = (key: string, unanswered: number) => ({
        sql: `update outbound_part
          set sending_at = 1, unanswered = ?
          where outbound_id in (select id from outbound_message where session_key = ?)`,
        args: [unanswered, key],
      });
      await app.db.write([kill("alerts:one", 0), kill("alerts:two", 1), {
        sql: "update outbound_message set due_at = 1",
        args: [],
      }]);
    }
    receiver.comeBack();
    await using app = await start();
    await app.settle();
    expect(listReplies(receiver)).toEqual(["once"]);
    const [two, one] = await app.call("GET /api/messages/outbound");
    expect([one.status, two.status]).toEqual(["sent", "failed"]);
    expect(two.error).toContain("may have arrived");
  });

  it.each([401, 429, 500, 503])("wait as long as it asks when it answers %i", async (status) => {
    const clock = new TestClock();
    await using receiver = receive(clock);
    await using app = await open(to(receiver), { clock });
    receiver.modes.push({ status, headers: { "retry-after": "120" } });
    const before = clock.now();
    await say(app, "say it", "m1");
    await waitUntil("the reply waits", async () => {
      const { attempt, error, next_attempt_at } = await readReply(app) ?? {};
      return error !== "" && next_attempt_at === before + 120_000 && attempt === 0;
    });
    expect(receiver.got).toHaveLength(1);
    clock.advance(120_000);
    await app.until("message.sent");
    expect(receiver.got).toHaveLength(2);
  });

  it("fail immediately when it refuses the message", async () => {
    await using receiver = new Receiver();
    await using app = await open(to(receiver));
    receiver.modes.push(422);
    await say(app, "say it", "m1");
    await app.settle();
    const message = await readReply(app);
    expect(message).toMatchObject({
      status: "failed",
      next_attempt_at: null,
      error: "reply_url answered 422",
    });
  });

  it("go to a private address only when the configuration allows it [WHK-2]", async () => {
    await using receiver = new Receiver();
    await using app = await open({ reply_url: receiver.url });
    await say(app, "say it", "m1");
    await app.settle();
    expect(receiver.got).toEqual([]);
    const message = await readReply(app);
    expect(message).toMatchObject({ status: "failed", next_attempt_at: null });
    expect(message.error).toContain("not a public address");
  });

  it("lose no attempts to restarts of the service while the receiver is down [PLT-2, PLT-3]", async () => {
    await using receiver = new Receiver();
    await using folder = await createTempDir();
    const start = () => open(to(receiver), { dataDir: folder.path });
    const looked = (app: App) => waitUntil("the outbox has run", () => countRounds(app) > 0);
    await receiver.goAway();
    {
      await using app = await start();
      await say(app, "say it", "m1");
      await app.until("message.undelivered");
    }
    for (let restart = 0; restart < 2; restart++) {
      await using app = await start();
      await looked(app);
    }
    receiver.comeBack();
    await using app = await start();
    await looked(app);
    expect(await app.db.read("select unanswered from outbound_part")).toEqual([{ unanswered: 0 }]);
    await app.db.write([{
      sql: "update outbound_message set due_at = 1 where status = 'failed'",
      args: [],
      wakeup: "outbox",
    }]);
    await app.until("message.sent");
  });
});
