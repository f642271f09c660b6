import type { Json } from "./harness/service/client.ts";

/** Creates sample data for every page. Returns the addresses of the pages by their names. */
export async function createSampleData(
  url: string,
  password: string,
  addMore: (call: Call) => Promise<void> = () => Promise.resolve(),
): Promise<Record<string, string>> {
  const login = await send(url, "", "POST /api/auth/login", { username: "admin", password });
  const call = (route: string, body?: unknown) => send(url, login.access_token, route, body);
  // The use of budgets counts runs in the order of their ends, so the older runs come first.
  await addMore(call);
  const { ada, bob } = await createWorkers(call);
  const chat = await createConversation(call, ada.id);
  await createSchedules(call, ada.id);
  await createOtherData(call, ada.id, chat);
  const { runner, away } = await createRunners(url, call);
  const [failed] = await call("GET /api/executions?status=failed");
  const [done] = await call("GET /api/executions?status=completed");
  const [schedule] = await call("GET /api/queue?status=scheduled");
  const [message] = await call("GET /api/messages/inbound");
  const [webhook] = await call("GET /api/webhooks");
  return {
    inbox: "/",
    chat: `/console/chat/${chat}`,
    executions: "/console/executions",
    execution: `/console/executions/${failed.id}`,
    done: `/console/executions/${done.id}`,
    tasks: "/console/tasks",
    task: `/console/tasks/${schedule.id}`,
    workers: "/console/workers",
    worker: `/console/workers/${ada.id}`,
    "worker-edit": `/console/workers/${bob.id}/edit`,
    schedules: "/console/schedules",
    schedule: `/console/schedules/${schedule.id}`,
    "schedule-new": "/console/schedules/new",
    messages: "/console/messages",
    "messages-out": "/console/messages?way=out",
    "not-here": "/console/executions/nothing",
    trace: `/console/messages/${encodeURIComponent(message.id)}`,
    memory: "/console/memory",
    costs: "/console/costs",
    "costs-month": "/console/costs?span=month&measure=runs",
    budgets: "/console/budgets",
    "budget-new": "/console/budgets?for=global",
    platforms: "/console/platforms",
    runners: "/console/runners",
    runner: `/console/runners?runner=${runner}`,
    "worker-away": `/console/workers/${away}`,
    system: "/console/system",
    usage: "/console/system/usage",
    settings: "/console/system/settings",
    "setup-platform": "/console/system/setup?for=telegram",
    "setup-engine": "/console/system/setup?for=claude",
    events: "/console/system/events",
    doctor: "/console/system/doctor",
    users: "/console/system/users",
    webhooks: "/console/system/webhooks",
    webhook: `/console/system/webhooks/${webhook.id}`,
    backup: "/console/system/backup",
    account: "/console/account",
  };
}

type Call = (route: string, body?: unknown) => Promise<Json>;

async function createWorkers(call: Call) {
  const office = await call("POST /api/departments", { name: "Office" });
  const web = await call("POST /api/departments", { name: "Website", parent_id: office.id });
  const ada = await call("POST /api/workers", {
    name: "Ada",
    engine: "writer",
    description: "Writes the newsletter and the weekly report",
    memory: "Short sentences. No exclamation marks. Numbers come from the shop's own statistics.",
    constraints: "Sends nothing to customers without asking.",
    departments: [office.id],
  });
  const bob = await call("POST /api/workers", {
    name: "Bob",
    engine: "builder",
    description: "Keeps the website's tests green",
    departments: [web.id],
  });
  await call("POST /api/workers", {
    name: "Grace",
    engine: "echo",
    description: "Answers suppliers",
    paused: true,
  });
  const task = { worker_id: bob.id, type: "immediate" };
  await runToEnd(call, {
    ...task,
    message_id: "nightly",
    instruction: "Run the tests of the shop and mend what is red",
  });
  return { ada, bob };
}

async function createConversation(call: Call, worker: string): Promise<string> {
  const names = ["Suppliers", "Ideas for December", "Weekly report"];
  let last = "";
  for (const name of names) {
    const { id } = await call("POST /api/local/sessions", { name, worker_id: worker });
    await call(`POST /api/local/sessions/${id}/messages`, {
      content: "How did last week go? A short report, please.",
    });
    for (let tries = 0; tries < 200; tries++) {
      const said = await call(`GET /api/local/sessions/${id}/messages`);
      if (said.length > 1) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    last = id;
  }
  return last;
}

async function createSchedules(call: Call, worker_id: string): Promise<void> {
  const plans = [["0 9 * * 1-5", "Read what suppliers wrote and list what needs an answer"], [
    "0 7 * * 1",
    "Write the weekly report",
  ]];
  for (const [cron, instruction] of plans) {
    await call("POST /api/tasks", {
      message_id: `plan ${cron}`,
      worker_id,
      instruction,
      type: "scheduled",
      cron,
    });
  }
}

async function createOtherData(call: Call, worker: string, chat: string): Promise<void> {
  const [message] = await call(`GET /api/messages/inbound?session_key=local:${chat}`);
  await call("POST /api/questions", {
    message_id: message.id,
    text: "The newsletter is ready. Shall it go out today?",
    options: ["Today", "Tomorrow"],
  });
  await call("PUT /api/memory/entry", {
    scope: "global",
    key: "tone",
    value: "Friendly and short. We say “you”.",
  });
  await call("PUT /api/memory/entry", {
    scope: "global",
    key: "opening hours",
    value: "Monday to Friday, 9 to 17. Closed in the last week of December.",
  });
  for (const [name, role] of [["grace", "operator"], ["heidi", "viewer"]]) {
    await call("POST /api/users", { name, role, password: "a long password" });
  }
  await call("POST /api/tokens", { name: "nightly build", scopes: ["read:tasks", "write:tasks"] });
  const { id } = await call("POST /api/webhooks", {
    name: "ci",
    url: "https://ci.example.org/hooks/svc",
    events: ["execution.failed", "schedule.paused"],
  });
  await call(`POST /api/webhooks/${id}/test`, {});
  const budget = { target: "global", unit: "runs", period: "month" };
  await call("POST /api/budgets", { ...budget, name: "Everything", limit: 200 });
  await call("POST /api/budgets", {
    ...budget,
    name: "Reports",
    target: `worker:${worker}`,
    limit: 3,
    period: "24h",
  });
  await call("POST /api/budgets", { ...budget, name: "Trials", unit: "minutes", limit: 600, period: "7d" });
}

/** Creates two connected runners, one that has never connected, and a worker with its directory on a runner. */
async function createRunners(url: string, call: Call): Promise<{ runner: string; away: string }> {
  const plans: [name: string, labels: string[], engines: string[]][] = [
    ["render1", ["gpu", "linux"], ["codex", "whisper"]],
    ["mac1", ["macos", "xcode"], ["claude"]],
  ];
  let runner = "";
  for (const [name, labels, engines] of plans) {
    const { id, token } = await call("POST /api/runners", { name, labels });
    const [process, place] = [crypto.randomUUID(), crypto.randomUUID()];
    const claim = () =>
      send(url, token, "POST /api/runners/claim", {
        request_id: crypto.randomUUID(),
        ...{ process, place, epoch: 0, protocol: 1, version: "4.9.0", work_root: "/var/lib/svc-runner" },
        max_runs: 4,
        engines: engines.map((engine) => ({ name: engine, agent: true })),
        wait_ms: 0,
      });
    await claim();
    // As long as pictures are made it is there.
    Deno.unrefTimer(setInterval(() => void claim().catch(() => {}), 10_000));
    runner = id;
  }
  await call("POST /api/runners/render1/drain", {});
  await call("POST /api/runners", { name: "mac2", labels: ["macos"] });
  const { id: away } = await call("POST /api/workers", {
    name: "Lin",
    engine: "claude",
    description: "Builds the app for phones",
    runs_on: ["macos"],
  });
  await call(`POST /api/workers/${away}/rehome`, { home: "mac1" });
  return { runner, away };
}

async function runToEnd(call: Call, task: object): Promise<void> {
  const { id } = await call("POST /api/tasks", task);
  await call(`GET /api/tasks/${id}/wait?timeout_ms=60000`);
}

async function send(url: string, token: string, route: string, body?: unknown): Promise<Json> {
  const [method = "GET", path = ""] = route.split(" ");
  const response = await fetch(url + path, {
    method,
    headers: {
      "content-type": "application/json",
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
  return await response.json();
}
