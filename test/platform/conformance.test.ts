// Runs the same journeys on every platform and its fake, and prints the matrix.
import { afterAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import type { App } from "../harness/service/app.ts";
import { createFastClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { type Journey, JOURNEYS } from "./journeys.ts";
import { WORLDS } from "./worlds/all.ts";
import { openWorld } from "./worlds/open.ts";
import { WebhookWorld } from "./worlds/webhook.ts";
import type { World } from "./worlds/world.ts";

const matrix = new Map<string, Map<string, string>>();

async function open(world: World, journey: Journey, dataDir: string): Promise<App> {
  const { isClosed = false, isRevoked = false, speed = 1 } = journey;
  if (isRevoked) world.revoke(true);
  const allow = isClosed ? [world.person] : ["*"];
  const clock = speed === 1 ? systemClock : createFastClock(speed);
  const app = await openWorld("there", world, { more: { allow }, dataDir, clock });
  if (world instanceof WebhookWorld) world.url = app.url;
  return app;
}

for (const SomeWorld of Object.values(WORLDS)) {
  const { kind, can } = new SomeWorld();
  // Journeys mostly wait, and each has another service.
  describe.concurrent(`${kind}: journeys of every platform (contract 10) [PLT-2]`, () => {
    const cells = new Map<string, string>();
    matrix.set(kind, cells);
    for (const journey of JOURNEYS) {
      const { name, needs, go } = journey;
      cells.set(name, "–");
      if (!needs.every((ability) => can.has(ability))) continue;
      cells.set(name, "failed");
      it(name, async () => {
        await using world = new SomeWorld();
        await using folder = await createTempDir();
        const stage = { world, app: await open(world, journey, folder.path), again };
        async function again(meanwhile = () => Promise.resolve()): Promise<void> {
          await stage.app.stop();
          await meanwhile();
          stage.app = await open(world, journey, folder.path);
        }
        try {
          await go(stage);
          expect(world.faults()).toEqual([]);
        } finally {
          await stage.app.stop();
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
