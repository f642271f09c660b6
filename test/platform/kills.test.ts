// Kills the service between events and their acknowledgements, and during replies, on four platforms in parallel.
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Client } from "../harness/service/client.ts";
import { createTempDir } from "../harness/service/process.ts";
import { runScenario, type World as Place } from "../harness/model/scenario.ts";
import { waitUntil } from "../harness/wait.ts";
import { pause } from "../harness/model/workload.ts";
import { DingTalkWorld } from "./worlds/dingtalk.ts";
import { DiscordWorld } from "./worlds/discord.ts";
import { FeishuWorld } from "./worlds/feishu.ts";
import { LocalWorld } from "./worlds/local.ts";
import { SlackWorld } from "./worlds/slack.ts";
import { TelegramWorld } from "./worlds/telegram.ts";
import { WebhookWorld } from "./worlds/webhook.ts";
import { WeComWorld } from "./worlds/wecom.ts";
import type { World } from "./worlds/world.ts";

// .ci/long runs 100 kills and 500 messages on each set of four.
const KILLS = Number(Deno.env.get("SVC_TEST_PLATFORM_KILLS") ?? 2);
const MESSAGES = KILLS * 5;
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
// The bot reads the history of known conversations only. Messages of one person are too far apart to be merged.
const KNOWN_MAX = 40;

/** Platforms and people. Local people write to the service directly. */
const FOURS: [kinds: string, create: () => Record<string, World>][] = [
  ["telegram, slack, webhook and local", () => ({
    phone: new TelegramWorld(),
    team: new SlackWorld(),
    alerts: new WebhookWorld("alerts"),
  })],
  ["feishu, dingtalk, discord and wecom", () => ({
    lark: new FeishuWorld(),
    ding: new DingTalkWorld(),
    guild: new DiscordWorld(),
    wecom: new WeComWorld(),
  })],
];

/** Four platforms with people in separate conversations, so that the service merges no messages. */
class Four implements AsyncDisposable {
  readonly worlds: Record<string, World>;
  readonly #local: LocalWorld | null;
  readonly #place: Place;
  #worker = "";

  constructor(worlds: Record<string, World>, place: Place) {
    this.worlds = worlds;
    this.#place = place;
    const hasLocal = Object.keys(worlds).length < 4;
    // Status 0: the service was down.
    const send: Client["send"] = (...request) =>
      place.api.send(...request).catch(() => ({ status: 0, body: null }));
    this.#local = hasLocal ? new LocalWorld(send) : null;
  }

  get names(): string[] {
    return Object.keys(this.worlds);
  }

  /** Passes the service's new address to the programs that send webhooks. */
  announce(): void {
    for (const world of Object.values(this.worlds)) {
      if (world instanceof WebhookWorld) world.url = this.#place.server.url;
    }
  }

  /** Creates a worker per platform. On platforms that find only known people again, they say hello. Returns their number. */
  async begin(): Promise<number> {
    for (const name of this.names) await this.#place.api.call("POST /api/workers", { name });
    this.#worker = (await this.#place.api.call("POST /api/workers", { name: "Ada" })).id;
    const known = Object.values(this.worlds).filter((world) => world instanceof DiscordWorld);
    const numbers = Array.from({ length: Math.min(KNOWN_MAX, MESSAGES / 4 + 1) }, (_, at) => at);
    for (const world of known) {
      for (const number of numbers) await world.say("say hello", { from: personOf(world, number) });
      await waitUntil(
        "they are known",
        () => answersOf(world, /^hello$/).length === numbers.length,
        120_000,
      );
    }
    return known.length * numbers.length;
  }

  say(number: number): Promise<unknown> {
    const name = this.names[number % 4];
    const world = name === undefined ? undefined : this.worlds[name];
    const text = `say answer ${number}`;
    if (world === undefined) return this.#local?.say(text, this.#worker) ?? Promise.resolve();
    const who = personOf(world, Math.floor(number / 4));
    return world.say(text, world instanceof WebhookWorld ? { chat: `c${who}` } : { from: who });
  }

  /** Lists the replies of each platform, with repetitions. */
  async answers(): Promise<Record<string, string[]>> {
    const all = Object.entries(this.worlds).map(([name, world]) => [name, answersOf(world, /^answer/)]);
    return {
      ...Object.fromEntries(all),
      ...(this.#local === null ? {} : { local: await this.#local.answers() }),
    };
  }

  async missing(said: number): Promise<number[]> {
    const answers = new Set(Object.values(await this.answers()).flat());
    return Array.from({ length: said }, (_, at) => at).filter((at) => !answers.has(`answer ${at}`));
  }

  /** Lists the stored messages, by default of all platforms. */
  async listStored(platform?: string): Promise<string[]> {
    const filter = platform === undefined ? "" : `platform=${platform}&`;
    const stored: string[] = [];
    for (let page = 1;; page++) {
      const found: { content: string }[] = await this.#place.api.call(
        `GET /api/messages/inbound?${filter}page_size=100&page=${page}`,
      );
      stored.push(...found.map(({ content }) => content));
      if (found.length < 100) return stored;
    }
  }

  /** Resends replies that may have arrived, after two kills hit both sends. Returns their number. */
  async resendDoubted(): Promise<number> {
    let count = 0;
    for (const platform of this.names) {
      count += (await this.#place.api.call("POST /api/messages/resend", { platform })).resent;
    }
    return count;
  }

  /** Finds the messages that a platform without acknowledgements lost with the service. */
  async lost(numbers: readonly number[]): Promise<number[]> {
    const lossy = this.names.filter((name) => this.worlds[name] instanceof WeComWorld);
    const stored = new Set((await Promise.all(lossy.map((name) => this.listStored(name)))).flat());
    return numbers.filter((at) =>
      lossy.includes(this.names[at % 4] ?? "") && !stored.has(`say answer ${at}`)
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const world of Object.values(this.worlds)) await world[Symbol.asyncDispose]();
  }
}

function personOf(world: World, number: number): string {
  return String(100 + (world instanceof DiscordWorld ? number % KNOWN_MAX : number));
}

function answersOf(world: World, form: RegExp): string[] {
  return world.sent().map(({ text }) => text).filter((text) => form.test(text));
}

interface Said {
  four: Four;
  greetings: number;
  saying: Promise<unknown>[];
}

it.each(FOURS)(
  `${KILLS} kills while ${MESSAGES} messages arrive and leave on %s: each is stored once and answered (seed ${SEED}) [PLT-1]`,
  async (kinds, create) => {
    await using folder = await createTempDir();
    const config = join(folder.path, "svc.yaml");
    const worlds = create();
    const platforms = Object.fromEntries(
      Object.entries(worlds).map(([name, world]) => [name, { ...world.config, worker: name, allow: ["*"] }]),
    );
    await Deno.writeTextFile(config, JSON.stringify({ platforms }));
    await runScenario<Said>({
      seed: SEED,
      args: ["-c", config],
      rounds: KILLS,
      fault: { kind: "kill after the action", afterMs: () => 0 },
      setup: async (place) => {
        const four = place.use(new Four(worlds, place));
        four.announce();
        return { four, greetings: await four.begin(), saying: [] };
      },
      action: async ({ chance }, { four, saying }, round) => {
        const ends = performance.now() + 200 + chance() * 1_500;
        while (saying.length < MESSAGES * (round + 1) / KILLS - 1) {
          saying.push(four.say(saying.length));
          await pause(chance() * 200);
        }
        await pause(Math.max(0, ends - performance.now()));
      },
      away: (_place, { four, saying }) => {
        saying.push(four.say(saying.length));
        return Promise.resolve();
      },
      restarted: (_place, { four }) => Promise.resolve(four.announce()),
      check: async (_place, { four, greetings, saying }) => {
        await Promise.all(saying);
        const settled = await settle(four, saying.length);
        expect(await four.listStored()).toHaveLength(saying.length + greetings);
        const answers = await four.answers();
        const twice = Object.entries(answers).map(([name, texts]) => `${name} ${doubles(texts).length}`);
        console.log(
          `${KILLS} kills, ${MESSAGES} messages on ${kinds}: sent twice ${twice.join(", ")}; ` +
            `said again by a person: ${settled.again}; in doubt and sent again by a person: ${settled.doubted}`,
        );
        check(four, answers);
      },
    });
  },
  6_000_000,
);

/** Waits for all replies. People repeat lost messages, and resend replies that may have arrived. */
async function settle(
  four: Four,
  said: number,
): Promise<{ again: number; doubted: number }> {
  let doubted = 0;
  let lost: number[] = [];
  await waitUntil("the replies to all stored messages", async () => {
    doubted += await four.resendDoubted();
    const missing = await four.missing(said);
    lost = await four.lost(missing);
    return missing.length === lost.length;
  }, 120_000);
  for (const number of lost) await four.say(number);
  await waitUntil("the replies to all messages", async () => {
    doubted += await four.resendDoubted();
    return (await four.missing(said)).length === 0;
  }, 120_000);
  return { again: lost.length, doubted };
}

/** A platform that knows the key of a message gets no message twice. On others, a kill during a send can double one. */
function check({ worlds }: Four, answers: Record<string, string[]>): void {
  for (const [name, texts] of Object.entries(answers)) {
    const world = worlds[name];
    if (world === undefined || world.copiesOfLost === 1) expect([name, doubles(texts)]).toEqual([name, []]);
    // A program recognizes a repeated id.
    if (world instanceof WebhookWorld) {
      const keyed = new Set(world.sent().map(({ id, text }) => `${id} ${text}`));
      expect(keyed.size).toBe(new Set(world.sent().map(({ text }) => text)).size);
    }
  }
  expect(doubles(Object.values(answers).flat()).length).toBeLessThanOrEqual(KILLS * 4);
  expect(Object.values(worlds).flatMap((world) => world.faults())).toEqual([]);
}

/** Lists one entry for each repeated copy. */
function doubles(texts: string[]): string[] {
  return texts.filter((text, at) => texts.indexOf(text) !== at);
}
