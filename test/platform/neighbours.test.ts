// An operation on one chat or person must not change others. A test with one of each would not notice a missing condition.
import { describe, expect, it } from "vitest";
import type { App } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { FakeTelegram } from "./fakes/telegram.ts";
import { openTelegram } from "./worlds/open.ts";

const CODE = /[A-Z0-9]{4}-[A-Z0-9]{4}/;
const texts = (fake: FakeTelegram) => fake.sent.map(({ text }) => text);
const stored = (app: App) => app.call("GET /api/messages/inbound");

describe("strangers [PLT-4]", () => {
  it("are paired and removed one at a time", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake);
    for (const from of [7, 8]) fake.say("say let me in", { chat: from, from });
    await waitUntil("two answers", () => fake.sent.length === 2);
    const codeOf = (chat: number) =>
      CODE.exec(fake.sent.find(({ chat_id }) => chat_id === String(chat))?.text ?? "")?.[0];
    await app.call("POST /api/platforms/pair", { code: codeOf(7), sender: "7" });
    fake.say("say me too", { chat: 8, from: 8 });
    fake.say("say it is me", { chat: 7, from: 7 });
    await waitUntil("the reply to the allowed person", () => texts(fake).includes("it is me"));
    expect(await stored(app)).toMatchObject([{ session_key: "phone:7" }]);
    await app.call("POST /api/platforms/pair", { code: codeOf(8), sender: "8" });
    await app.call("DELETE /api/platforms/phone/senders/8");
    fake.say("say still here", { chat: 8, from: 8 });
    fake.say("say last", { chat: 7, from: 7 });
    await waitUntil("the reply to the other person", () => texts(fake).includes("last"));
    expect(await stored(app)).toHaveLength(2);
  });

  it("have a code that is valid for an hour, and no other code is (contract 10.2)", async () => {
    await using fake = new FakeTelegram();
    const clock = new TestClock(Date.now());
    await using app = await openTelegram(fake, {}, clock);
    fake.say("say let me in");
    await waitUntil("an answer", () => fake.sent.length === 1);
    const [code = ""] = CODE.exec(texts(fake)[0] ?? "") ?? [];
    const status = async (given: string) =>
      (await app.send("POST /api/platforms/pair", { code: given })).status;
    expect(await status("AAAA-AAAA")).toBe(404);
    expect(await status(code)).toBe(200);
    clock.advance(3_600_000);
    expect(await status(code)).toBe(404);
  });
});

describe("chats", () => {
  it("stop their own runs, and none of other chats (contract 10.7)", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.say("say hello", { chat: 1, from: 1 });
    await waitUntil("a reply", () => texts(fake).includes("hello"));
    await app.settle();
    fake.say("!stop", { chat: 2, from: 2 });
    await waitUntil(
      "it is answered",
      () => texts(fake).some((text) => text?.startsWith("Nothing was running")),
    );
    expect((await stored(app)).map(({ status }: { status: string }) => status)).toEqual([
      "bee_processed",
      "bee_processed",
    ]);
  });
});
