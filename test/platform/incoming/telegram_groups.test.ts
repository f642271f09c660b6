// Albums in groups, and groups that become supergroups.
import { describe, expect, it } from "vitest";
import { findMovedChats, moveChat } from "../../../src/api/chat/moved_chat.ts";
import type { App } from "../../harness/service/app.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { FakeTelegram } from "../fakes/telegram.ts";
import { listInbound, openTelegram, openWorld, waitForInbound } from "../worlds/open.ts";

const GROUP = { chat: -5, type: "group", from: 7 };
const NEW = -1_000_000_000_005;
const texts = (fake: FakeTelegram) => fake.sent.map(({ text }) => text);

function open(fake: FakeTelegram, dataDir: string, more: Record<string, unknown> = {}): Promise<App> {
  const config = { kind: "telegram", token: fake.token, base_url: fake.url };
  return openWorld("phone", { config }, { more: { allow: ["7"], ...more }, dataDir });
}

/** Sends one photo of an album. */
function show(
  fake: FakeTelegram,
  id: number,
  caption?: string,
  { album = "a1", ...place } = { ...GROUP },
): void {
  fake.files.set(`f${id}`, new TextEncoder().encode(`bytes ${id}`));
  const photo = [{ file_id: `f${id}`, file_size: 7 }];
  fake.say("", { ...place, id, more: { text: undefined, caption, photo, media_group_id: album } });
}

const listMedia = async (app: App) =>
  (await app.call("GET /api/messages/inbound")).filter(({ media }: { media: unknown }) => media !== null);
const waitForMedia = (app: App, count: number) =>
  waitUntil(`${count} files`, async () => (await listMedia(app)).length === count);

describe("an album in a group", () => {
  it.each([[0], [1], [2]])("arrives as a whole with the mention in the caption of photo %i", async (at) => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    for (const id of [0, 1, 2]) show(fake, 50 + id, id === at ? "@svc_bot say three" : undefined);
    await waitForMedia(app, 3);
    await waitUntil("the reply", () => texts(fake).includes("three"));
    await waitUntil("the updates are confirmed", () => fake.unconfirmed === 0);
    expect((await listInbound(app)).sort()).toEqual(["", "", "say three"]);
    expect(fake.faults).toEqual([]);
  });

  it("arrives as a whole across polls, and only this album of this person", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    show(fake, 50);
    show(fake, 60, undefined, { ...GROUP, album: "a2" });
    show(fake, 70, undefined, { ...GROUP, chat: -6 });
    const { polls } = fake;
    await waitUntil("a poll", () => fake.polls > polls + 1);
    show(fake, 51, "@svc_bot say both");
    await waitForMedia(app, 2);
    await waitUntil("another poll", () => fake.unconfirmed === 0);
    show(fake, 52);
    await waitForMedia(app, 3);
    fake.say("say unasked", GROUP);
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    await app.settle();
    expect(
      (await listMedia(app)).map((one: { platform_message_id: string }) => one.platform_message_id).sort(),
    )
      .toEqual(["-5:50", "-5:51", "-5:52"]);
  });

  it("arrives as a whole across a restart, before and after the mention", async () => {
    await using fake = new FakeTelegram();
    await using folder = await createTempDir();
    let app = await open(fake, folder.path);
    show(fake, 50);
    const { polls } = fake;
    await waitUntil("a poll", () => fake.polls > polls + 1);
    await app.stop();
    show(fake, 51, "@svc_bot say both");
    app = await open(fake, folder.path);
    await waitForMedia(app, 2);
    await waitUntil("the updates are confirmed", () => fake.unconfirmed === 0);
    await app.stop();
    show(fake, 52);
    app = await open(fake, folder.path);
    await waitForMedia(app, 3);
    await app.stop();
  });

  it("does not delay other messages, and is confirmed without a mention", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    for (const id of [50, 51]) show(fake, id);
    fake.say("say meanwhile", { chat: 9, from: 9 });
    await waitUntil("a reply", () => texts(fake).includes("meanwhile"));
    await waitUntil("the updates are confirmed", () => fake.unconfirmed === 0);
    await app.settle();
    expect(await listInbound(app)).toEqual(["say meanwhile"]);
  });

  it("is not stored if its sender has no access", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["8"] });
    show(fake, 50, "@svc_bot say no");
    show(fake, 51);
    fake.say("say yes", { chat: 8, from: 8 });
    await waitUntil("the reply", () => texts(fake).includes("yes"));
    await waitUntil("the updates are confirmed", () => fake.unconfirmed === 0);
    expect(await listInbound(app)).toEqual(["say yes"]);
  });
});

describe("a group that becomes a supergroup", () => {
  const MOVES = {
    "the notice in the old chat": (fake: FakeTelegram) =>
      fake.say("", { ...GROUP, more: { text: undefined, migrate_to_chat_id: NEW } }),
    "the notice in the new chat": (fake: FakeTelegram) =>
      fake.say("", { chat: NEW, type: "supergroup", more: { text: undefined, migrate_from_chat_id: -5 } }),
  };

  async function begin(fake: FakeTelegram, app: App) {
    fake.say("@svc_bot say begun", GROUP);
    await waitUntil("the first reply", () => texts(fake).includes("begun"));
    await app.settle();
    const [{ id }] = await app.call("GET /api/messages/inbound");
    return id;
  }

  it.each(Object.entries(MOVES))(
    "keeps conversation, access, schedules and open replies, after %s",
    async (_, move) => {
      await using fake = new FakeTelegram();
      await using folder = await createTempDir();
      let app = await open(fake, folder.path, { allow: ["-5"] });
      const id = await begin(fake, app);
      const [{ id: worker_id }] = await app.call("GET /api/workers");
      const schedule = await app.call("POST /api/tasks", {
        message_id: id,
        worker_id,
        type: "scheduled",
        cron: "0 5 1 1 *",
        instruction: "say x",
        deliver_to: "phone:-5",
      });
      const question = await app.call("POST /api/questions", { message_id: id, text: "Go on?" });
      await waitUntil("the question", () => texts(fake).some((one) => one.startsWith("Go on?")));
      await app.call("PUT /api/memory/entry", { scope: "phone:-5", key: "color", value: "red" });
      fake.limited.add("-5");
      await app.call("POST /api/messages", { message_id: id, content: "pending" });
      fake.upgraded.set("-5", NEW);
      move(fake);
      await waitUntil("the move", () => fake.unconfirmed === 0);
      await app.settle();
      await app.stop();
      fake.limited.clear();
      app = await open(fake, folder.path, { allow: ["-5"] });
      await waitUntil("the open reply", () => texts(fake).includes("pending"), 20_000);
      expect(fake.sent.find(({ text }) => text === "pending")).toMatchObject({ chat_id: String(NEW) });
      expect(fake.sent.find(({ text }) => text === "pending")).not.toHaveProperty("reply_parameters");
      // The supergroup numbers its messages anew.
      fake.say("@svc_bot say moved", { chat: NEW, type: "supergroup", from: 7, id: 1 });
      await waitUntil("a reply", () => texts(fake).includes("moved"));
      await app.settle();
      const keys = async (path: string) =>
        new Set((await app.call(path)).map((one: { session_key: string }) => one.session_key));
      const paths = ["messages/inbound", "messages/outbound", "conversations"];
      for (const path of [...paths, `tasks?worker_id=${worker_id}`, `executions?worker_id=${worker_id}`]) {
        expect([path, await keys(`GET /api/${path}`)]).toEqual([path, new Set([`phone:${NEW}`])]);
      }
      expect(await app.call(`GET /api/tasks/${schedule.id}`)).toMatchObject({
        deliver_to: `phone:${NEW}`,
        session_key: `phone:${NEW}`,
      });
      const memory = await app.call(`GET /api/memory?scope=${encodeURIComponent(`phone:${NEW}`)}`);
      expect(JSON.stringify(memory)).toContain("red");
      expect(await app.call(`GET /api/questions/${question.id}`)).toMatchObject({
        session_key: `phone:${NEW}`,
      });
      await app.stop();
    },
  );

  it("is found by the error of a reply, and the reply arrives once", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["-5"] });
    const id = await begin(fake, app);
    fake.upgraded.set("-5", NEW);
    await app.call("POST /api/messages", { message_id: id, content: "news" });
    await waitUntil("the reply", () => texts(fake).includes("news"));
    await app.call("POST /api/messages", { message_id: id, content: "more news" });
    await waitUntil("the next reply", () => texts(fake).includes("more news"));
    await app.settle();
    expect(fake.sent.filter(({ chat_id }) => String(chat_id) === String(NEW)).map(({ text }) => text))
      .toEqual(["news", "more news"]);
    fake.say("@svc_bot say here", { chat: NEW, type: "supergroup", from: 7 });
    await waitUntil("access in the new chat", () => texts(fake).includes("here"));
    fake.say("@svc_bot say there", { chat: -7, type: "supergroup", from: 7 });
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    await app.settle();
    expect(texts(fake)).not.toContain("there");
  });

  it("also moves the reply and the session of a run that ends after the move", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.say("@svc_bot sleep 2", GROUP);
    await waitUntil("the run", async () => {
      const [worker] = await app.call("GET /api/workers");
      return (await app.call(`GET /api/executions?worker_id=${worker.id}`)).length === 1;
    });
    fake.upgraded.set("-5", NEW);
    for (const move of Object.values(MOVES)) move(fake);
    await waitUntil("the move", () => fake.unconfirmed === 0);
    await waitUntil("the reply", () => fake.sent.some(({ chat_id }) => String(chat_id) === String(NEW)));
    await app.settle();
    const keys = (await app.call("GET /api/conversations")).map((one: { session_key: string }) =>
      one.session_key
    );
    expect(keys).toEqual([`phone:${NEW}`]);
  });

  it("has the latest of several new ids", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["-5"] });
    await moveChat(app, "phone", "-5", "-6");
    await moveChat(app, "phone", "-6", "-7");
    expect(await findMovedChats(app.db, "phone")).toEqual({ "-5": "-7", "-6": "-7" });
    for (const chat of [-6, -8]) fake.say("@svc_bot say hello", { chat, type: "supergroup", from: 7 });
    await waitForInbound(app, 1);
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    await app.settle();
    const keys = (await app.call("GET /api/conversations")).map((one: { session_key: string }) =>
      one.session_key
    );
    expect(keys).toEqual(["phone:-7"]);
  });

  it("moves once for repeated notices, and not back", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    await begin(fake, app);
    for (let i = 0; i < 2; i++) for (const move of Object.values(MOVES)) move(fake);
    fake.say("", { chat: NEW, type: "supergroup", more: { text: undefined, migrate_to_chat_id: -5 } });
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    fake.say("@svc_bot say late", GROUP);
    await waitForInbound(app, 2);
    await app.settle();
    const keys = (await app.call("GET /api/conversations")).map((one: { session_key: string }) =>
      one.session_key
    );
    expect(keys).toEqual([`phone:${NEW}`]);
  });
});
