import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

const REPLAY = new URL("../../harness/fakes/replay.sh", import.meta.url).pathname;
const RECORDED = new URL("../../engine/recorded/", import.meta.url);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Returns a recorded stream as text, with the session and times of this test. */
async function stream(kind: string, name: string, change: (line: string) => string): Promise<string> {
  const text = await Deno.readTextFile(new URL(`${kind}.jsonl`, RECORDED));
  return text.trim().split("\n").map((line) => JSON.parse(line)).filter((one) => one.case === name)
    .map(({ line }) => change(JSON.stringify(line)) + "\n").join("");
}

/** The reports of a provider: the used share of its window and its end, and a refusal until its end. */
interface Provider {
  said: (used: number, until: number) => Promise<Record<string, string>>;
  rejected: (until: number) => Promise<Record<string, string>>;
  window: string;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

// Claude Code reports the window in its stream, and only with a subscription login (facts, engines 3).
function limitLine(status: string, used: number, until: number): string {
  const info = { status, resetsAt: seconds(until), rateLimitType: "five_hour", utilization: used };
  return JSON.stringify({ type: "rate_limit_event", rate_limit_info: info, session_id: "SESSION" }) + "\n";
}

const ofSession = (line: string) => line.replaceAll("254a58d1-eb9d-4654-961f-cdcf7d47eb34", "SESSION");

const claude: Provider = {
  window: "five_hour",
  said: async (used, until) => {
    const [init = "", ...rest] = (await stream("claude", "said", ofSession)).split(/(?<=\n)/);
    const status = used > 0.8 ? "allowed_warning" : "allowed";
    return { said: [init, limitLine(status, used, until), ...rest].join("") };
  },
  rejected: async (until) => ({
    rejected: limitLine("rejected", 1, until) + await stream("claude", "rejected", ofSession),
  }),
};

const THREAD = "01a201e2-0f57-7210-9c79-9570f54f7391";
const ofThread = (line: string) => line.replaceAll(THREAD, "SESSION");

const codex: Provider = {
  window: "5h",
  said: async (used, until) => ({
    said: await stream("codex", "said", ofThread),
    session: await stream(
      "codex",
      "session",
      (line) =>
        line.replace('"used_percent":85.0', `"used_percent":${used * 100}`)
          .replace('"used_percent":85,', `"used_percent":${used * 100},`)
          .replace("1795331519", String(seconds(until))),
    ),
  }),
  // The provider names the minute.
  rejected: async (until) => {
    const time = new Date(until).toLocaleTimeString("en-US", {
      ...{ hour: "numeric", minute: "2-digit", timeZone: "UTC" },
    });
    return {
      rejected: await stream("codex", "rejected", (line) => ofThread(line).replaceAll("7:11 AM", time)),
    };
  },
};

async function openReplay(kind: string, clock: TestClock, folder: string): Promise<App> {
  const engine = {
    command: REPLAY,
    env: { REPLAY: folder, FIRST_SESSION: THREAD, ANTHROPIC_API_KEY: "x", CODEX_API_KEY: "x" },
    reserve: "20%",
  };
  return await openApp({
    clock,
    config: { scheduler: { time_zone: "UTC" }, engines: { default: kind, [kind]: engine } as never },
  });
}

describe.each([["claude", claude], ["codex", codex]] as const)(
  "%s reports its provider's windows (contract 14)",
  (kind, provider) => {
    it(
      "blocks a schedule at the reserve during a chat, blocks everything after a refusal, and resumes at the reset, to the second",
      async () => {
        const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
        const clock = new TestClock("2026-11-22T06:00:00Z");
        const play = async (files: Record<string, string>) => {
          for (const [name, text] of Object.entries(files)) {
            await Deno.writeTextFile(join(folder, name), text);
          }
        };
        const firstReset = clock.now() + HOUR_MS;
        await play(await provider.said(0.85, firstReset));
        await using app = await openReplay(kind, clock, folder);
        const worker = await app.call("POST /api/workers", { name: "Ada" });
        const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
        const say = async (content: string) => {
          const sent = await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
          await waitUntil(
            "it is routed",
            async () => (await app.call(`GET /api/tasks?message_id=${sent.message_id}`)).length === 1,
          );
          return (await app.call(`GET /api/tasks?message_id=${sent.message_id}`))[0].id as string;
        };
        const task = (id: string) => app.call(`GET /api/tasks/${id}`);
        const held = (id: string) =>
          waitUntil(`${id} is held`, async () => (await task(id)).held_by !== null);
        // Checks that nothing has run a second before the time, and that the tasks run at the time.
        const exactly = async (at: number, ids: string[], ran: (id: string) => Promise<boolean>) => {
          clock.advance(at - 1_000 - clock.now());
          app.server.dispatcher.stage.wake();
          await app.settle();
          for (const id of ids) {
            expect(await ran(id)).toBe(false);
          }
          clock.advance(1_000);
          for (const id of ids) await waitUntil("it has run", () => ran(id));
          await app.settle();
        };
        await say("hello");
        await app.settle();
        expect((await app.call(`GET /api/engines/${kind}`)).windows).toMatchObject(
          kind === "claude"
            ? [{ name: provider.window, utilization: 0.85, resets_at: firstReset }]
            : [{ name: provider.window, utilization: 0.85, resets_at: firstReset }, { name: "7d" }],
        );
        const schedule = await app.call("POST /api/tasks", {
          ...{
            message_id: "script",
            worker_id: worker.id,
            instruction: "go",
            type: "scheduled",
            cron: "0 0 1 1 *",
          },
        });
        const scheduleRan = async (runs: number) => {
          const rows = await app.db.read(
            "select id from execution where task_id = ? and status = 'completed'",
            [schedule.id],
          );
          return rows.length === runs;
        };
        await app.call(`POST /api/tasks/${schedule.id}/run`);
        await held(schedule.id);
        expect((await task(schedule.id)).held_by).toMatchObject({
          kind: "engine",
          id: kind,
          until: firstReset,
        });
        const chat = await say("and now?");
        await app.settle();
        expect([(await task(chat)).status, (await task(schedule.id)).status]).toEqual([
          "completed",
          "pending",
        ]);
        // The next window starts nearly empty.
        await play(await provider.said(0.02, firstReset + 5 * HOUR_MS));
        await exactly(firstReset, [schedule.id], () => scheduleRan(1));
        // After a refusal no task of this engine runs, even when a person waits.
        const secondReset = firstReset + 90 * MINUTE_MS;
        await play(await provider.rejected(secondReset));
        const refused = await say("rejected");
        await app.until("engine.limited");
        await app.call(`POST /api/tasks/${schedule.id}/run`);
        await Promise.all([held(refused), held(schedule.id)]);
        const until = (await app.call(`GET /api/engines/${kind}`)).limited_until;
        expect([(await task(refused)).held_by.until, (await task(schedule.id)).held_by.until]).toEqual([
          until,
          until,
        ]);
        // A limit given in minutes ends with its minute.
        expect([secondReset, secondReset + MINUTE_MS]).toContain(until);
        await Deno.writeTextFile(join(worker.work_dir, "free"), "");
        await exactly(
          until,
          [refused, schedule.id],
          async (id) => id === refused ? (await task(id)).status === "completed" : await scheduleRan(2),
        );
        await Deno.remove(folder, { recursive: true });
      },
      120_000,
    );
  },
);
