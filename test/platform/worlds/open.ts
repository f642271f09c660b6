import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { fakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import type { World } from "./world.ts";

/** A service with one platform, on which everybody may speak unless `more` says otherwise, and its worker Ada. */
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
