import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { TestClock } from "../../harness/clock.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";
import type { FakeTelegram } from "../fakes/telegram.ts";
import type { World } from "./world.ts";

interface Options {
  more?: Record<string, unknown>;
  clock?: Clock | undefined;
}

/** Opens a service with one platform and its worker Ada. By default the platform allows all people. */
export async function openWorld(
  name: string,
  world: Pick<World, "config">,
  { more = {}, clock = systemClock }: Options = {},
): Promise<App> {
  const platform = { ...world.config, worker: "Ada", allow: ["*"], ...more };
  const platforms = { [name]: platform as never };
  const app = await openApp({ clock, config: { engines: buildFakeEngines(), platforms } });
  await app.call("POST /api/workers", { name: "Ada" });
  return app;
}

/** Opens a service with a Telegram bot that allows only the people of `more`. */
export function openTelegram(fake: FakeTelegram, more: Record<string, unknown> = {}, clock?: Clock) {
  const config = { kind: "telegram", token: fake.token, base_url: fake.url };
  return openWorld("phone", { config }, { more: { allow: [], ...more }, clock });
}

/** Lists the texts of the bot that are not deleted. */
export function listTexts(world: World): string[] {
  return world.sent().filter(({ deleted }) => !deleted).map(({ text }) => text);
}

export function waitForText(world: World, text: string): Promise<void> {
  return waitUntil(text, () => listTexts(world).includes(text));
}

export async function readState(app: App, name: string): Promise<string> {
  return (await app.call(`GET /api/platforms/${name}`)).state;
}

/** Reads the doctor's check of the platforms. */
export async function readPlatformCheck(app: App) {
  const { checks } = await app.call("GET /api/system/doctor");
  return checks.find(({ name }: { name: string }) => name === "platforms");
}

/** Waits until the platform reconnects after 25.5 s of silence, and not before. */
export async function expectReconnect(app: App, name: string, fake: { opened: number }, clock: TestClock) {
  const isConnected = async () => await readState(app, name) === "connected";
  await waitUntil("it is connected", isConnected);
  if (fake.opened !== 1) throw new Error(`it connected ${fake.opened} times`);
  clock.advance(25_500);
  await waitUntil("it connects again", () => {
    clock.advance(200);
    return fake.opened === 2;
  });
  await waitUntil("it is connected again", isConnected);
}
