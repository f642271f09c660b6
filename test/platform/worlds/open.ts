import { type Clock, systemClock } from "../../../src/base/clock.ts";
import type { Delivery, IncomingMessage, LastMessage, Platform } from "../../../src/platform/platform.ts";
import { MANIFESTS } from "../../../src/platform/registry.ts";
import type { TestClock } from "../../harness/clock.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp, type TestSettings } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";
import type { FakeTelegram } from "../fakes/telegram.ts";
import type { World } from "./world.ts";

interface Options {
  /** Replaces settings of the platform. */
  more?: Record<string, unknown>;
  clock?: Clock | undefined;
  dataDir?: string;
}

/** Opens a service with one platform and its worker Ada. By default the platform allows all people. */
export function openWorld(name: string, world: Pick<World, "config">, options: Options = {}): Promise<App> {
  const { more = {}, ...rest } = options;
  return openPlatforms({ [name]: { ...world.config, worker: "Ada", allow: ["*"], ...more } }, rest);
}

/** Opens a service with platforms and the worker Ada. `config` has other keys of config.yaml. */
export async function openPlatforms(
  platforms: Record<string, unknown>,
  { config = {}, clock = systemClock, ...options }: Omit<Options, "more"> & { config?: TestSettings } = {},
): Promise<App> {
  const all = { engines: buildFakeEngines(), platforms: platforms as never, ...config };
  const app = await openApp({ ...options, clock, config: all });
  // After a restart the worker exists already.
  await app.send("POST /api/workers", { name: "Ada" });
  return app;
}

/** Opens a service with a Telegram bot that allows only the people of `more`. */
export function openTelegram(fake: FakeTelegram, more: Record<string, unknown> = {}, clock?: Clock) {
  const config = { kind: "telegram", token: fake.token, base_url: fake.url };
  return openWorld("phone", { config }, { more: { allow: [], ...more }, clock });
}

/** Creates a platform without a service. */
export async function createPlatform(config: World["config"], clock = systemClock): Promise<Platform> {
  const manifest = MANIFESTS.find(({ kind }) => kind === config.kind);
  if (manifest === undefined) throw new Error(`no platform ${config.kind}`);
  return await manifest.create("there", manifest.settings.parse(config), clock);
}

interface StartOptions {
  clock?: Clock;
  lastHeard?: LastMessage[];
  /** Runs before a message is stored. Its error fails the store. */
  before?: (incoming: IncomingMessage) => void | Promise<void>;
}

/** Connects a platform without a service, and records its messages. */
export async function startPlatform(
  { config }: Pick<World, "config">,
  { clock = systemClock, lastHeard = [], before = () => {} }: StartOptions = {},
) {
  const came: IncomingMessage[] = [];
  const platform = await createPlatform(config, clock);
  platform.start(async (incoming) => {
    await before(incoming);
    came.push(incoming);
    return { outcome: "queued", message_id: "m" };
  }, () => Promise.resolve(lastHeard));
  await waitUntil("it is connected", () => platform.health().state === "connected");
  return {
    platform,
    came,
    texts: () => came.map(({ text }) => text),
    [Symbol.asyncDispose]: () => platform.stop(),
  };
}

export function buildDelivery(text: string, more: Partial<Delivery> = {}): Delivery {
  return { key: "k", chat: "7", thread: "", answers: "", choices: [], part: { text, media: null }, ...more };
}

/** Lists the texts of the bot that are not deleted. */
export function listTexts(world: World): string[] {
  return world.sent().filter(({ deleted }) => !deleted).map(({ text }) => text);
}

export function waitForText(world: World, text: string): Promise<void> {
  return waitUntil(text, () => listTexts(world).includes(text));
}

/** Lists the texts of the stored messages, oldest first. */
export async function listInbound(app: App): Promise<string[]> {
  const messages: { content: string }[] = await app.call("GET /api/messages/inbound?page_size=100");
  return messages.map(({ content }) => content).reverse();
}

export function waitForInbound(app: App, count: number): Promise<void> {
  return waitUntil(`${count} stored messages`, async () => (await listInbound(app)).length === count);
}

/** Reads the newest reply. */
export async function readReply(app: App) {
  return (await app.call("GET /api/messages/outbound"))[0];
}

export function waitForState(app: App, name: string, state: string): Promise<void> {
  return waitUntil(`${name} is ${state}`, async () => {
    return (await app.call(`GET /api/platforms/${name}`)).state === state;
  });
}

/** Reads the doctor's check of the platforms. */
export async function readPlatformCheck(app: App) {
  const { checks } = await app.call("GET /api/system/doctor");
  return checks.find(({ name }: { name: string }) => name === "platforms");
}

/** Waits until the platform reconnects after 25.5 s of silence, and not before. */
export async function expectReconnect(app: App, name: string, fake: { opened: number }, clock: TestClock) {
  await waitForState(app, name, "connected");
  if (fake.opened !== 1) throw new Error(`it connected ${fake.opened} times`);
  clock.advance(25_500);
  await waitUntil("it connects again", () => {
    clock.advance(200);
    return fake.opened === 2;
  });
  await waitForState(app, name, "connected");
}
