import { expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { createPlatforms } from "../../src/boot/platforms.ts";
import { configSchema } from "../../src/config/schema.ts";
import type { ReceiveResult } from "../../src/platform/platform.ts";
import { waitUntil } from "../harness/wait.ts";
import { DingTalkWorld } from "./worlds/dingtalk.ts";
import { FeishuWorld } from "./worlds/feishu.ts";
import { SlackWorld } from "./worlds/slack.ts";

const WORLDS = [() => new SlackWorld(), () => new FeishuWorld(), () => new DingTalkWorld()];

it.each(WORLDS.map((create) => [create().kind, create] as const))(
  "%s keeps the order of messages when the first try to store one fails [PLT-1]",
  async (_kind, create) => {
    await using world = create();
    const config = configSchema.parse({ platforms: { there: world.config } });
    const platform = (await createPlatforms(config, systemClock)).get("there")?.platform;
    const storing: string[] = [];
    platform?.start(async ({ text }) => {
      storing.push(text);
      if (storing.length > 1) return { outcome: "queued", message_id: "1" };
      // The other messages arrive before the answer to this one.
      await (await fetch(world.fake.url)).body?.cancel();
      throw new Error("the disk is full");
    }, () => Promise.resolve([]));
    try {
      for (const text of ["one", "two", "three"]) await world.say(text);
      await waitUntil("all are acknowledged", () => world.fake.waiting.size === 0);
      expect(storing).toEqual(["one", "one", "two", "three"]);
    } finally {
      await platform?.stop();
    }
  },
);

it.each(WORLDS.map((create) => [create().kind, create] as const))(
  "%s acknowledges an event after storing it, and gets an unstored one again [PLT-1]",
  async (_kind, create) => {
    await using world = create();
    const { waiting } = world.fake;
    const config = configSchema.parse({ platforms: { there: world.config } });
    const platform = (await createPlatforms(config, systemClock)).get("there")?.platform;
    const storing: PromiseWithResolvers<ReceiveResult>[] = [];
    platform?.start(() => {
      const gate = Promise.withResolvers<ReceiveResult>();
      storing.push(gate);
      return gate.promise;
    }, () => Promise.resolve([]));
    try {
      await world.say("hello");
      await waitUntil("it is being stored", () => storing.length === 1);
      expect(waiting.size).toBe(1);
      storing[0]?.reject(new Error("the disk is full"));
      await waitUntil("it comes again", () => storing.length === 2);
      expect(waiting.size).toBe(1);
      storing[1]?.resolve({ outcome: "queued", message_id: "1" });
      await waitUntil("it is acknowledged", () => waiting.size === 0);
      expect(storing).toHaveLength(2);
    } finally {
      await platform?.stop();
    }
  },
);
