import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countRuns, waitForCalls, writeAskingClaude } from "../harness/fakes/asking_claude.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { openPlatforms } from "../platform/worlds/open.ts";
import { SlackWorld } from "../platform/worlds/slack.ts";
import { TelegramWorld } from "../platform/worlds/telegram.ts";
import { WebhookWorld } from "../platform/worlds/webhook.ts";
import type { World } from "../platform/worlds/world.ts";

async function openChat(world: World, dataDir: string, config: object = {}) {
  const claude = await writeAskingClaude(dataDir);
  const engines = { default: "claude", claude };
  const platform = { ...world.config, worker: "Ada", allow: ["*"] } as never;
  return await openPlatforms({ there: platform }, { dataDir, config: { engines, ...config } });
}

async function waitForButtons(world: World, count: number) {
  await waitUntil(
    "the buttons",
    () => world.sent().filter(({ buttons }) => buttons.length > 0).length === count,
  );
  const message = world.sent().findLast(({ buttons }) => buttons.length > 0);
  if (message === undefined) throw new Error("no buttons");
  return message;
}

describe.each([["Telegram", TelegramWorld], ["Slack", SlackWorld]] as const)(
  "a tool call in a chat of %s (contract 23)",
  (_name, World) => {
    it("is allowed and denied by its buttons, in a group by the sender of the message only [APV-1]", async () => {
      await using world = new World();
      await using dir = await createTempDir();
      await using app = await openChat(world, dir.path);
      const group = { chat: "-5", isGroup: true, isMention: true };
      for (const [at, [label, runs]] of ([["Allow", 1], ["Deny", 0]] as const).entries()) {
        const path = join(dir.path, label);
        await world.say(`call Write ${path}`, group);
        const [call] = await waitForCalls(app);
        const message = await waitForButtons(world, 1);
        expect(message.text).toContain("Write");
        expect(message.text).toContain(path);
        expect(message.buttons).toEqual(["Allow", "Allow in this conversation", "Deny"]);
        world.press(message, "Allow", "66");
        // A group of Slack has a conversation per thread.
        const thread = message.thread === "" ? {} : { thread: message.thread };
        await world.say("Allow", { ...group, ...thread, from: "66" });
        await waitUntil(
          "the other person gets an answer",
          () =>
            world.sent().filter(({ text }) => text.startsWith("Only the person whose message")).length ===
              at + 1,
        );
        expect((await app.call(`GET /api/questions/${call?.id}`)).status).toBe("open");
        world.press(message, label);
        await app.settle();
        expect(await app.call(`GET /api/questions/${call?.id}`)).toMatchObject({
          status: "answered",
          answer: label,
          answered_by: `platform:there:${world.person}`,
        });
        expect(await countRuns(path)).toBe(runs);
      }
    });

    it("that the chat cannot show whole can only be denied there, and allowed by a user", async () => {
      await using world = new World();
      await using dir = await createTempDir();
      await using app = await openChat(world, dir.path);
      const path = join(dir.path, "a");
      await world.say(`call Write ${path} ${"x".repeat(1_500)}END`);
      const [call] = await waitForCalls(app);
      const message = await waitForButtons(world, 1);
      expect(message.buttons).toEqual(["Deny"]);
      expect(message.text).toMatch(/characters, SHA-256 [0-9a-f]{64}/);
      expect(message.text).toContain("END");
      expect(message.text.length).toBeLessThan(1_500);
      expect(call?.arguments ?? "").toContain(path);
      expect((await app.call(`GET /api/questions/${call?.id}`)).arguments).toContain(
        `${"x".repeat(1_500)}END`,
      );
      await world.say("/answer Allow");
      await waitUntil("a hint", () => world.sent().some(({ text }) => text.includes("choose one of: Deny")));
      expect((await app.call(`GET /api/questions/${call?.id}`)).status).toBe("open");
      await app.call(`POST /api/questions/${call?.id}/answer`, { answer: "Allow" });
      await app.settle();
      expect(await countRuns(path)).toBe(1);
    });
  },
);

describe("a tool call in a conversation of a webhook (contract 23)", () => {
  it("is denied immediately, unless a notice reaches a person", async () => {
    for (const told of [false, true]) {
      await using world = new WebhookWorld();
      await using dir = await createTempDir();
      const notices = told ? { notices: [{ on: ["question.opened"], program: ["true"] }] } : {};
      await using app = await openChat(world, dir.path, notices);
      world.url = app.url;
      const path = join(dir.path, "a");
      await world.say(`call Write ${path}`);
      if (told) {
        const [call] = await waitForCalls(app);
        await app.call(`POST /api/questions/${call?.id}/answer`, { answer: "Allow" });
      }
      await waitUntil("a run", async () => (await app.call("GET /api/executions")).length === 1);
      await app.settle();
      expect((await app.call("GET /api/questions")).length).toBe(told ? 1 : 0);
      expect((await app.call("GET /api/executions"))[0].result).toMatch(
        told ? /^allow$/ : /nobody can be asked here/,
      );
      expect(await countRuns(path)).toBe(told ? 1 : 0);
    }
  });
});
