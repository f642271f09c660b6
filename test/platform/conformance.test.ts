// Runs the same journeys on every platform and its fake, and prints the matrix.
import { afterAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createFastClock } from "../harness/clock.ts";
import { type Journey, JOURNEYS } from "./journeys.ts";
import { DingTalkWorld } from "./worlds/dingtalk.ts";
import { FeishuWorld } from "./worlds/feishu.ts";
import { DiscordWorld } from "./worlds/discord.ts";
import { SlackWorld } from "./worlds/slack.ts";
import { TelegramWorld } from "./worlds/telegram.ts";
import { WeComWorld } from "./worlds/wecom.ts";
import { WebhookWorld } from "./worlds/webhook.ts";
import type { World } from "./worlds/world.ts";

const WORLDS: (() => World)[] = [
  () => new TelegramWorld(),
  () => new SlackWorld(),
  () => new FeishuWorld(),
  () => new DingTalkWorld(),
  () => new DiscordWorld(),
  () => new WeComWorld(),
  () => new WebhookWorld(),
];

const matrix = new Map<string, Map<string, string>>();

async function open(world: World, { isClosed = false, speed = 1 }: Journey, dataDir: string): Promise<App> {
  const allow = isClosed ? world.can.has("pairing") ? [world.person] : ["*"] : ["*"];
  const there = { ...world.config, worker: "Ada", allow };
  const app = await openApp({
    dataDir,
    clock: speed === 1 ? systemClock : createFastClock(speed),
    config: { engines: buildFakeEngines(), platforms: { there: there as never } },
  });
  if (world instanceof WebhookWorld) world.url = app.url;
  return app;
}

for (const create of WORLDS) {
  const { kind, can } = create();
  describe(`${kind}: journeys of every platform (contract 10) [PLT-2]`, () => {
    const cells = new Map<string, string>();
    matrix.set(kind, cells);
    for (const journey of JOURNEYS) {
      const { name, needs, go } = journey;
      cells.set(name, "–");
      if (!needs.every((ability) => can.has(ability))) continue;
      cells.set(name, "failed");
      it(name, async () => {
        await using world = create();
        const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
        const stage = { world, app: await open(world, journey, dataDir), again };
        async function again(meanwhile = () => Promise.resolve()): Promise<void> {
          await stage.app.stop();
          await meanwhile();
          stage.app = await open(world, journey, dataDir);
        }
        try {
          await stage.app.call("POST /api/workers", { name: "Ada" });
          await go(stage);
          expect(world.faults()).toEqual([]);
        } finally {
          await stage.app.stop();
          await Deno.remove(dataDir, { recursive: true }).catch(() => {});
        }
        cells.set(name, "yes");
      });
    }
  });
}

afterAll(() => {
  const kinds = [...matrix.keys()];
  const rows = JOURNEYS.map(({ name }) =>
    `| ${name} | ${kinds.map((kind) => matrix.get(kind)?.get(name)).join(" | ")} |`
  );
  console.log(
    [`| journey | ${kinds.join(" | ")} |`, `|---|${kinds.map(() => "---|").join("")}`, ...rows].join("\n"),
  );
});
