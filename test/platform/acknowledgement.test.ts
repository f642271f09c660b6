import { describe, expect, it } from "vitest";
import type { Receive, ReceiveResult } from "../../src/platform/platform.ts";
import { waitUntil } from "../harness/wait.ts";
import { WORLDS } from "./worlds/all.ts";
import { createPlatform } from "./worlds/open.ts";

const { slack, feishu, dingtalk } = WORLDS;

async function connect(config: Record<string, unknown>, receive: Receive) {
  const platform = await createPlatform(config);
  platform.start(receive, () => Promise.resolve([]));
  return { [Symbol.asyncDispose]: () => platform.stop() };
}

describe.each(Object.entries({ slack, feishu, dingtalk }))("%s", (_kind, SomeWorld) => {
  it("keeps the order of messages when the first try to store one fails [PLT-1]", async () => {
    await using world = new SomeWorld();
    const storing: string[] = [];
    await using _platform = await connect(world.config, async ({ text }) => {
      storing.push(text);
      if (storing.length > 1) return { outcome: "queued", message_id: "1" };
      // The other messages arrive before the answer to this one.
      await (await fetch(world.fake.url)).body?.cancel();
      throw new Error("the disk is full");
    });
    for (const text of ["one", "two", "three"]) await world.say(text);
    await waitUntil("all are acknowledged", () => world.fake.waiting.size === 0);
    expect(storing).toEqual(["one", "one", "two", "three"]);
  });

  it("acknowledges an event after storing it, and gets an unstored one again [PLT-1]", async () => {
    await using world = new SomeWorld();
    const { waiting } = world.fake;
    const storing: PromiseWithResolvers<ReceiveResult>[] = [];
    await using _platform = await connect(world.config, () => {
      const gate = Promise.withResolvers<ReceiveResult>();
      storing.push(gate);
      return gate.promise;
    });
    await world.say("hello");
    await waitUntil("it is being stored", () => storing.length === 1);
    expect(waiting.size).toBe(1);
    storing[0]?.reject(new Error("the disk is full"));
    await waitUntil("the event arrives again", () => storing.length === 2);
    expect(waiting.size).toBe(1);
    storing[1]?.resolve({ outcome: "queued", message_id: "1" });
    await waitUntil("it is acknowledged", () => waiting.size === 0);
    expect(storing).toHaveLength(2);
  });
});
