import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { fakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import type { World } from "./world.ts";

/** Opens a service with one platform and its worker Ada. By default the platform allows all people. */
export async function openWorld(
  name: string,
  world: World,
  { more = {}, clock = systemClock }: { more?: Record<string, unknown>; clock?: Clock } = {},
): Promise<App> {
  const platform = { ...world.config, worker: "Ada", allow: ["*"], ...more };
  const platforms = { [name]: platform as never };
  const app = await openApp({ clock, config: { engines: fakeEngines(), platforms } });
  await app.call("POST /api/workers", { name: "Ada" });
  return app;
}
