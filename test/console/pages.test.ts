import { afterAll, beforeAll, expect, it } from "vitest";
import { findViolations } from "../harness/axe.ts";
import { type App, openApp, type TestSettings } from "../harness/service/app.ts";
import { FakeRunner } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";
import { FakeTelegram } from "../platform/fakes/telegram.ts";
import { describeConsole, DESK, PHONE, type Visitor } from "../harness/browser.ts";
import { createSchedule } from "../harness/model/workload.ts";

const POLL = { timeout: 30_000 };

const VIEWS = {
  desk: DESK,
  phone: PHONE,
  "dark desk": { ...DESK, dark: true },
  "dark phone": { ...PHONE, dark: true },
};
// A run looks at each page in one of two views, and the next run perhaps in the other. `.ci/long` looks at each in all four.
const SHORT = ["desk", "dark phone"];
const TURN = Math.floor(Math.random() * SHORT.length);
const isLong = Deno.env.get("SVC_TEST_VIEWS") === "all";
// Parts keep each test below a minute.
const PARTS = 4;

// Markup, links and terminal codes that would run code or change the page.
const HOSTILE = `<img src=x onerror="window.canary=1"><script>window.canary=1</script>` +
  `<svg onload="window.canary=1"> [press](javascript:window.canary=1) ![p](data:text/html,<script>window.canary=1</script>) ` +
  `<a href="javascript:window.canary=1">x</a> <iframe srcdoc="<script>parent.canary=1</script>"></iframe>`;
const WEBHOOK_SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;
const LOG = `\x1b]0;title\x07\x1b[31m${HOSTILE}\x1b[0m \x1b[2J\x1b[5A`;

/** Fills a service with hostile data for every page. Returns the paths of the pages. */
async function fill(app: App, fake: FakeTelegram): Promise<string[]> {
  const name = HOSTILE.slice(0, 190);
  const department = await app.call("POST /api/departments", {
    name: name.replaceAll(",", "").slice(0, 150),
  });
  const worker = await app.call("POST /api/workers", {
    name,
    description: HOSTILE,
    memory: HOSTILE,
    constraints: HOSTILE,
    engine: "hostile",
    departments: [department.id],
  });
  const failing = await app.call("POST /api/workers", { name: `${name.slice(0, 100)}2`, engine: "failing" });
  const chat = await app.call("POST /api/local/sessions", { name, worker_id: worker.id });
  const other = await app.call("POST /api/local/sessions", { name: "Other", worker_id: failing.id });
  const sent = await app.call(`POST /api/local/sessions/${chat.id}/messages`, { content: HOSTILE });
  await app.call(`POST /api/local/sessions/${other.id}/messages`, { content: HOSTILE });
  await app.call("PUT /api/memory/entry", { scope: "global", key: name, value: HOSTILE });
  const schedule = await createSchedule(app, worker.id, HOSTILE);
  await hide(app, { worker: worker.id, chat: chat.id, message: sent.message_id });
  await app.call("POST /api/users", { name: name.slice(0, 100), role: "viewer" });
  await app.call("PUT /api/secrets/key", { value: HOSTILE, workers: [worker.id] });
  await app.call(`PUT /api/workers/${worker.id}`, { env: { TEXT: HOSTILE, KEY: "secret:key" } });
  await app.call("POST /api/tokens", { name: name.slice(0, 100), scopes: ["read:tasks"] });
  await app.settle();
  await app.call("POST /api/budgets", {
    name: name.slice(0, 100),
    target: `worker:${worker.id}`,
    unit: "runs",
    limit: 1,
    period: "month",
  });
  const held = await app.call("POST /api/tasks", {
    message_id: name,
    worker_id: worker.id,
    instruction: HOSTILE,
    type: "immediate",
  });
  const webhook = await app.call("POST /api/webhooks", {
    name: name.slice(0, 100),
    url: `https://127.0.0.1/${encodeURIComponent(HOSTILE.slice(0, 200))}`,
    events: ["task.*"],
  });
  await app.call(`POST /api/webhooks/${webhook.id}/test`, {});
  const away = await createRunner(app, name);
  await createSender(app, fake);
  await app.settle();
  const executions = await app.call("GET /api/executions") as {
    id: string;
    status: string;
    task_id: string;
  }[];
  const one = (status: string) => executions.find((execution) => execution.status === status)?.id ?? "";
  return [
    "/",
    "/console/chat",
    `/console/chat/${chat.id}`,
    `/console/chat/${other.id}`,
    "/console/executions",
    `/console/executions?worker=${worker.id}&status=failed`,
    `/console/executions/${one("completed")}`,
    `/console/executions/${one("failed")}?raw=yes`,
    `/console/executions/${one("failed")}?line=2`,
    "/console/tasks",
    `/console/tasks/${executions[0]?.task_id}`,
    "/console/workers",
    "/console/workers/new",
    `/console/workers/${worker.id}`,
    `/console/workers/${worker.id}/edit`,
    "/console/messages",
    "/console/messages?way=out",
    `/console/messages/${sent.message_id}`,
    "/console/memory",
    "/console/system",
    "/console/costs",
    "/console/costs?span=month&measure=runs",
    "/console/system/settings",
    "/console/system/setup?for=telegram",
    "/console/system/setup?for=claude",
    "/console/system/usage",
    "/console/system/usage?by=conversation&span=week",
    "/console/tasks?status=scheduled",
    "/console/system/events",
    "/console/system/doctor",
    "/console/system/users",
    "/console/system/secrets",
    "/console/system/webhooks",
    `/console/system/webhooks/${webhook.id}`,
    "/console/system/backup",
    "/console/schedules?state=paused",
    "/console/budgets?for=global",
    `/console/tasks/${held.id}`,
    `/console/chat/${encodeURIComponent(STRANGE_KEY)}`,
    "/console/messages?status=failed",
    "/console/account",
    "/console/budgets",
    "/console/schedules",
    "/console/schedules/new",
    `/console/schedules/${schedule}`,
    `/console/schedules/${schedule}/edit`,
    "/console/platforms",
    "/console/runners",
    `/console/runners?runner=${away.runner}&find=${encodeURIComponent(HOSTILE.slice(0, 20))}`,
    `/console/workers/${away.worker}`,
    `/console/memory?scope=local:${chat.id}`,
    `/console/system/events?kind=${encodeURIComponent(HOSTILE)}`,
    `/console/workers?name=${encodeURIComponent(HOSTILE)}`,
    `/console/chat/${encodeURIComponent(HOSTILE)}`,
    `/console/executions?session=${encodeURIComponent(HOSTILE)}`,
    "/console/no-such-page",
  ];
}

/** Creates a runner with hostile data, and a worker with its directory on it. */
async function createRunner(app: App, name: string): Promise<{ runner: string; worker: string }> {
  const { id, token } = await app.call("POST /api/runners", { name: name.slice(0, 100), labels: ["x"] });
  await new FakeRunner(app, token).claim({
    wait_ms: 0,
    version: HOSTILE.slice(0, 100),
    work_root: HOSTILE,
    engines: [{ name: HOSTILE.slice(0, 64), agent: false, external: false }],
  });
  const away = { name: `${name.slice(0, 100)}3`, engine: HOSTILE.slice(0, 64), runs_on: ["x"] };
  const worker = await app.call("POST /api/workers", away);
  await app.call(`POST /api/workers/${worker.id}/rehome`, { home: id });
  return { runner: id, worker: worker.id };
}

const STRANGE_KEY = "phone:4711";

/** Creates a sender with a hostile name and a hostile message on another platform. */
async function createSender(app: App, fake: FakeTelegram): Promise<void> {
  await app.db.write([{
    sql:
      "insert into platform_sender (platform, id, name, paired_by, created_at) values ('phone', ?, ?, ?, ?)",
    args: [HOSTILE.slice(0, 100), HOSTILE, HOSTILE, Date.now()],
  }]);
  const from = { id: 4711, is_bot: false, first_name: HOSTILE };
  fake.say(HOSTILE, { chat: 4711, from: 4711, more: { from } });
  await waitUntil("the message is routed", async () => {
    const heard = await app.call(`GET /api/messages/inbound?session_key=${STRANGE_KEY}`);
    return heard[0]?.status === "bee_processed";
  });
}

/** Adds hostile data that fill() does not. */
async function hide(app: App, { worker, chat, message }: Record<"worker" | "chat" | "message", string>) {
  const name = HOSTILE.slice(0, 100);
  await app.call(`PUT /api/workers/${worker}`, { engine_args: { claude: `'${HOSTILE}'` } });
  await app.call("POST /api/questions", { message_id: message, text: HOSTILE, options: [name, `2 ${name}`] });
  const answered = await app.call("POST /api/questions", { message_id: message, text: `${HOSTILE} again` });
  await app.call(`POST /api/questions/${answered.id}/answer`, { answer: HOSTILE });
  await app.call("PUT /api/memory/entry", { scope: `local:${chat}`, key: name, value: HOSTILE });
  await app.call("POST /api/messages", { message_id: message, content: HOSTILE });
  const form = new FormData();
  form.set("file", new File([HOSTILE], `${name.replaceAll("/", "")}.svg`, { type: "image/svg+xml" }));
  const headers = { authorization: `Bearer ${await app.token()}` };
  const upload = await fetch(`${app.url}/api/local/sessions/${chat}/media`, {
    method: "POST",
    body: form,
    headers,
  });
  const { path: media_path } = await upload.json();
  await app.call(`POST /api/local/sessions/${chat}/messages`, { content: "a file", media_path });
  const upper = await app.call("POST /api/departments", { name: name.replaceAll(",", "") });
  await app.call("POST /api/departments", { name: `${name.replaceAll(",", "")} below`, parent_id: upper.id });
  await app.call("POST /api/tasks", {
    message_id: name,
    worker_id: worker,
    instruction: HOSTILE,
    type: "scheduled",
    cron: name,
  });
}

function buildSettings(fake: FakeTelegram): TestSettings {
  const phone = { kind: "telegram", token: fake.token, base_url: fake.url, allow: ["*"] };
  const shop = { kind: "webhook", worker: HOSTILE.slice(0, 190), secret: WEBHOOK_SECRET };
  return { engines: buildEngines(), platforms: { phone, shop } as never };
}

function buildEngines() {
  const script = (end: string) => `cat >/dev/null; printf '%s\\n' "$LOG" >&2; printf '%s' "$SAID"; ${end}`;
  const env = { LOG, SAID: HOSTILE };
  return {
    hostile: { kind: "command", command: "sh", args: ["-c", script("exit 0")], env },
    failing: { kind: "command", command: "sh", args: ["-c", script("exit 1")], env },
  };
}

describeConsole("every page of the console", ({ visit }) => {
  const fake = new FakeTelegram();
  let app: App;
  let pages: string[];
  beforeAll(async () => {
    app = await openApp({ config: buildSettings(fake) });
    pages = await fill(app, fake);
  });
  afterAll(async () => {
    await app[Symbol.asyncDispose]();
    await fake[Symbol.asyncDispose]();
  });

  for (const [name, view] of Object.entries(VIEWS)) {
    if (!isLong && !SHORT.includes(name)) continue;
    const isSeen = (index: number) => isLong || (index + TURN) % SHORT.length === SHORT.indexOf(name);
    for (let part = 0; part < PARTS; part++) {
      it(`runs no code of hostile texts, has no axe violations, and fits the screen: ${name}, ${part + 1} of ${PARTS} [CNS-1]`, async () => {
        await using visitor = await visit(app.url, { view });
        await visitor.goto("/");
        const faults: unknown[] = await findViolations(visitor.page);
        await visitor.signIn();
        for (
          const each of pages.filter((_, index) => isSeen(index) && Math.floor(index / 2) % PARTS === part)
        ) {
          for (const fault of await look(visitor, each)) faults.push([each, fault]);
        }
        expect(faults).toEqual([]);
      });
    }
  }

  it("shows hostile input as text, unchanged [CNS-1]", async () => {
    await using visitor = await visit(app.url, { at: pages[2] ?? "" });
    const { page } = visitor;
    const reply = page.getByRole("article", { name: "Reply" });
    await reply.getByText("<script>window.canary=1</script>").first().waitFor();
    await reply.getByText("press").first().click();
    expect(await page.evaluate("window.canary")).toBeUndefined();
  });
});

/** Opens a page, checks that its data is plain text and fits the screen, and returns the violations that axe finds. */
async function look(visitor: Visitor, address: string): Promise<unknown[]> {
  const { page } = visitor;
  await visitor.goto(address);
  await page.locator(":is(h1, h2, .empty-title):visible").first().waitFor();
  await expect.poll(() => page.locator(".loading").count(), POLL).toBe(0);
  const state = await page.evaluate(
    "(({ scrollWidth, scrollHeight }) => [window.canary, scrollWidth > innerWidth, scrollHeight > innerHeight])(document.documentElement)",
  );
  expect([address, state]).toEqual([address, [undefined, false, false]]);
  const made = page.locator("a[href^='javascript'], a[href^='data'], main iframe, main img");
  expect([address, await made.count()]).toEqual([address, 0]);
  return await findViolations(visitor.page);
}
