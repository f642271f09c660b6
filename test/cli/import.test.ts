import { expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { ctl } from "../harness/terminal.ts";

const FIXTURES = new URL("../fixtures/import", import.meta.url).pathname;
const openWithAgents = () =>
  openApp({ inMemory: true, config: { engines: { ...buildFakeEngines(), default: "claude" } } });

/** Copies a fixture into a fresh directory, so that a test may change it. */
async function copyFixture(source: string) {
  const folder = await createTempDir();
  const copied = await new Deno.Command("cp", { args: ["-a", `${FIXTURES}/${source}/.`, folder.path] })
    .output();
  expect(copied.success).toBe(true);
  return folder;
}

const LISTED = "Not imported:\n";

const SOURCES = [
  {
    source: "openclaw",
    workers: ["main", "ops"],
    schedules: [["digest", "main", false], ["often", "ops", false], ["off", "ops", true]],
    memory: ["You are calm and precise.", "Reports are due on Fridays.", "Ada lives in Berlin."],
    secrets: [
      "openclaw-docs-authorization",
      "openclaw-telegram-token",
      "openclaw-tracker-tracker_token",
      "openclaw-tracker-tracker_url",
    ],
    leftOut: [
      "schedule once: it runs once",
      "schedule heartbeat-main: it is a job of OpenClaw itself",
      "workspace/memory: 1 notes",
      "workspace/skills/feeds",
      "gateway",
    ],
  },
  {
    source: "hermes",
    workers: ["hermes", "coder"],
    schedules: [["digest", "hermes", false], ["feeds", "hermes", true]],
    memory: ["You are Ada, a calm assistant.", "Reports are due on Fridays.", "The user lives in Berlin."],
    secrets: ["hermes-docs-authorization", "hermes-telegram-token", "hermes-tracker-tracker_token"],
    leftOut: ["schedule once: it runs once", "MCP server notes", "skills/feeds", "model"],
  },
];

it.each(SOURCES)("import $source prints a fleet file that apply takes, with its secrets set", async (one) => {
  await using app = await openWithAgents();
  const { code, out, err } = await ctl(app, [
    "import",
    one.source,
    `${FIXTURES}/${one.source}`,
    "--with-secrets",
  ]);
  expect([code, err]).toEqual([0, expect.stringContaining('allow:\n        - "42"\n        - "43"')]);
  expect(out + err).not.toContain("canary");
  const secrets = await app.call("GET /api/secrets");
  expect(secrets.map(({ name }: { name: string }) => name).sort()).toEqual(one.secrets);

  const applied = await ctl(app, ["apply", "-f", "-"], { stdin: out });
  expect([applied.code, applied.err]).toEqual([0, ""]);
  const workers = await app.call("GET /api/workers");
  const names = new Map(workers.map(({ id, name }: { id: string; name: string }) => [id, name]));
  expect([...names.values()].sort()).toEqual([...one.workers].sort());
  const [first] = one.workers;
  const main = workers.find(({ name }: { name: string }) => name === first);
  for (const text of one.memory) expect(main.memory).toContain(text);
  expect(Object.keys(main.mcp)).toEqual(["docs", "tracker"]);
  expect(main.mcp.tracker.env.TRACKER_TOKEN).toBe(`secret:${one.source}-tracker-tracker_token`);
  const schedules = await app.call("GET /api/schedules");
  expect(
    schedules.map(({ name, worker_id, paused }: { name: string; worker_id: string; paused: boolean }) => [
      name,
      names.get(worker_id),
      paused,
    ]).sort(),
  ).toEqual([...one.schedules].sort());
  const doctor = await app.call("GET /api/secrets/" + one.secrets.at(-1));
  expect(doctor.workers).toContain(main.id);
});

it.each(SOURCES)(
  "import $source copies no secret without --with-secrets, and lists what has no equal",
  async (one) => {
    await using app = await openWithAgents();
    const { code, out, err } = await ctl(app, ["import", one.source, `${FIXTURES}/${one.source}`]);
    expect([code, out + err]).toEqual([0, expect.not.stringContaining("canary")]);
    for (const name of one.secrets) expect(err).toContain(`svc ctl secret set ${name}\n`);
    const [, list = ""] = err.split(LISTED);
    for (const line of one.leftOut) expect(list).toContain(`  ${line}`);
    expect(await app.call("GET /api/secrets")).toEqual([]);
    const refused = await ctl(app, ["apply", "-f", "-"], { stdin: out });
    expect([refused.code, refused.err]).toEqual([
      2,
      expect.stringContaining("Set it with svc ctl secret set"),
    ]);
  },
);

it.each(SOURCES)(
  "import $source --dry-run prints what the file would have, and sets nothing",
  async (one) => {
    await using app = await openWithAgents();
    const args = ["import", one.source, `${FIXTURES}/${one.source}`, "--dry-run", "--with-secrets"];
    const { code, out, err } = await ctl(app, args);
    expect([code, out + err]).toEqual([0, expect.not.stringContaining("canary")]);
    expect(out.trim().split("\n").sort()).toEqual([
      ...one.workers.map((name) => `+ worker ${name}`),
      ...one.schedules.map(([name]) => `+ schedule ${name}`),
      ...one.secrets.map((name) => `+ secret ${name}`),
    ].sort());
    expect(await app.call("GET /api/secrets")).toEqual([]);
    expect(await app.call("GET /api/workers")).toEqual([]);
  },
);

it.each(["openclaw", "hermes"])("import %s of another directory, or of none, ends with 2", async (source) => {
  await using folder = await createTempDir();
  const empty = await ctl(null, ["import", source, folder.path]);
  expect([empty.code, empty.out, empty.err]).toEqual([
    2,
    "",
    expect.stringMatching(/it has no .*\. Name the/),
  ]);
  const none = await ctl(null, ["import", source, `${folder.path}/none`]);
  expect([none.code, none.err]).toEqual([2, expect.stringContaining("No such file or directory")]);
});

it("import reads no link that leaves the directory, no pipe and no huge file, and lists them", async () => {
  await using folder = await copyFixture("openclaw");
  await using outside = await createTempDir();
  await Deno.writeTextFile(`${outside.path}/AGENTS.md`, "outside-text");
  const at = (name: string) => `${folder.path}/${name}`;
  for (const name of ["workspace/SOUL.md", "workspace-ops", "workspace/USER.md", "workspace/MEMORY.md"]) {
    await Deno.remove(at(name), { recursive: true });
  }
  await Deno.symlink(`${outside.path}/AGENTS.md`, at("workspace/SOUL.md"));
  await Deno.symlink(outside.path, at("workspace-ops"));
  expect((await new Deno.Command("mkfifo", { args: [at("workspace/USER.md")] }).output()).success).toBe(true);
  await Deno.writeTextFile(at("workspace/MEMORY.md"), "");
  await Deno.truncate(at("workspace/MEMORY.md"), 2 ** 32);
  await Deno.truncate(at("state/openclaw.sqlite"), 2 ** 32);
  const { code, out, err } = await ctl(null, ["import", "openclaw", folder.path]);
  expect([code, out]).toEqual([0, expect.not.stringContaining("outside-text")]);
  const [, list = ""] = err.split(LISTED);
  expect(list).toContain("  workspace/SOUL.md: it is a link to a place outside the directory\n");
  expect(list).toContain("  workspace/USER.md: it is not a file\n");
  expect(list).toContain("  workspace/MEMORY.md: it is larger than 262144 bytes\n");
  expect(list).toContain(
    "  files of agent ops: its workspace (/home/ada/.openclaw/workspace-ops) is not inside",
  );
  expect(list).toContain(
    "  state/openclaw.sqlite: it is larger than 536870912 bytes, so none of its schedules is imported\n",
  );
  await Deno.remove(at("openclaw.json"));
  await Deno.symlink(`${FIXTURES}/openclaw/openclaw.json`, at("openclaw.json"));
  expect((await ctl(null, ["import", "openclaw", folder.path])).code).toBe(2);
});

const DEEP = 1_000_000;
const ALIASES = ["a: &a [x, x, x, x, x, x, x, x, x, x]"].concat(
  Array.from({ length: 20 }, (_, at) => {
    const [one, other] = [String.fromCharCode(97 + at), String.fromCharCode(98 + at)];
    return `${other}: &${other} [${Array(10).fill(`*${one}`).join(", ")}]`;
  }),
).join("\n");

it.each<[string, string, string, string, RegExp]>([
  [
    "a broken JSON",
    "openclaw",
    "openclaw.json",
    '{\n "token": "canary-1",\n "x" "canary-2"\n}',
    /openclaw.json: 3:\d+: it is not/,
  ],
  ["deep JSON", "openclaw", "openclaw.json", "[".repeat(DEEP), /openclaw.json: .*it is not valid JSON/],
  [
    "an open text",
    "openclaw",
    "openclaw.json",
    `{"a": '${'\\"'.repeat(DEEP)}`,
    /openclaw.json: .*it is not valid JSON/,
  ],
  [
    "bytes that are no text",
    "openclaw",
    "openclaw.json",
    "\ud800".repeat(10) + "\0",
    /openclaw.json: .*it is not/,
  ],
  [
    "YAML with aliases of aliases",
    "hermes",
    "config.yaml",
    ALIASES,
    /config.yaml: it is not valid YAML, or has too many/,
  ],
  ["deep YAML", "hermes", "config.yaml", "[".repeat(20_000), /config.yaml: .*it is not valid YAML/],
  ["a broken list of jobs", "hermes", "cron/jobs.json", '{"canary"', /jobs.json: .*it is not valid JSON/],
  ...([
    ["openclaw", "openclaw.json", "[]", "it must be an object"],
    ["openclaw", "openclaw.json", "null", "it must be an object"],
    ["openclaw", "openclaw.json", '{"agents": 1}', "agents must be an object"],
    ["openclaw", "openclaw.json", '{"agents": {"list": "canary"}}', "agents.list must be a list"],
    ["openclaw", "openclaw.json", '{"agents": {"list": [{}, 1]}}', "agents.list.1 must be an object"],
    [
      "openclaw",
      "openclaw.json",
      '{"agents": {"entries": {"main": []}}}',
      "agents.entries.main must be an object",
    ],
    [
      "openclaw",
      "openclaw.json",
      '{"agents": {"entries": {"main": {"name": {}}}}}',
      "agents.entries.main.name must be a text",
    ],
    [
      "openclaw",
      "openclaw.json",
      '{"agents": {"entries": {"a\\nb": 1}}}',
      'agents.entries."a\\\\nb" must be an object',
    ],
    ["openclaw", "openclaw.json", '{"channels": 7}', "channels must be an object"],
    ["openclaw", "openclaw.json", '{"bindings": {}}', "bindings must be a list"],
    ["openclaw", "openclaw.json", '{"mcp": {"servers": [1]}}', "mcp.servers must be an object"],
    ["openclaw", "openclaw.json", '{"mcp": {"servers": {"a": 1}}}', "mcp.servers.a must be an object"],
    ["openclaw", "cron/jobs.json", '{"jobs": {}}', "jobs must be a list"],
    ["hermes", "config.yaml", "[1, 2]", "it must be an object"],
    ["hermes", "config.yaml", "mcp_servers: 5", "mcp_servers must be an object"],
    ["hermes", "config.yaml", "mcp_servers: {a: {args: canary}}", "mcp_servers.a.args must be a list"],
    ["hermes", "cron/jobs.json", "[]", "it must be an object"],
    ["hermes", "cron/jobs.json", '{"jobs": [{"enabled": "no"}]}', "jobs.0.enabled must be true or false"],
  ] as const).map(([source, file, text, words]): [string, string, string, string, RegExp] => [
    `${text} in ${file}`,
    source,
    file,
    text,
    new RegExp(`/${file}: ${words.replaceAll(".", "\\.")}\n$`),
  ]),
])(
  "import of %s ends with 2, naming the file and quoting nothing",
  async (_what, source, file, text, words) => {
    await using folder = await copyFixture(source);
    await Deno.mkdir(`${folder.path}/cron`, { recursive: true });
    await Deno.writeTextFile(`${folder.path}/${file}`, text);
    const { code, out, err } = await ctl(null, ["import", source, folder.path]);
    expect([code, out, err]).toEqual([2, "", expect.stringMatching(words)]);
    expect(err).not.toContain("canary");
    expect(err.length).toBeLessThan(400);
  },
);

const JOBS = {
  version: 1,
  jobs: [
    {
      id: "j1",
      name: "digest",
      enabled: false,
      schedule: { kind: "cron", expr: "0 8 * * *", tz: "Europe/Berlin" },
      payload: { kind: "agentTurn", message: "Write the digest." },
    },
    {
      id: "j2",
      schedule: { kind: "every", everyMs: 3_600_000 },
      payload: { kind: "systemEvent", text: "Look." },
    },
    {
      id: "j3",
      name: "once",
      schedule: { kind: "at", atMs: 1 },
      payload: { kind: "systemEvent", text: "Hi." },
    },
  ],
};

it("import openclaw reads the schedules of cron/jobs.json, unless the database has some", async () => {
  await using folder = await createTempDir();
  await Deno.mkdir(`${folder.path}/cron`);
  await Deno.writeTextFile(`${folder.path}/openclaw.json`, "{}");
  await Deno.writeTextFile(`${folder.path}/cron/jobs.json`, JSON.stringify(JOBS));
  const found = await ctl(null, ["import", "openclaw", folder.path, "--json"]);
  expect([found.code, JSON.parse(found.out).schedules]).toEqual([0, [
    {
      name: "digest",
      worker: "main",
      cron: "0 8 * * *",
      time_zone: "Europe/Berlin",
      instruction: "Write the digest.",
      paused: true,
    },
    { name: "j2", worker: "main", cron: "0 * * * *", instruction: "Look." },
  ]]);
  const [, list = ""] = found.err.split(LISTED);
  expect(list).toContain("  schedule once: it runs once: svc ctl schedule create --at\n");
  expect(list).toContain(
    "  files of agent main: its workspace (workspace) does not exist in the directory\n",
  );

  await Deno.mkdir(`${folder.path}/state`);
  await Deno.copyFile(`${FIXTURES}/openclaw/state/openclaw.sqlite`, `${folder.path}/state/openclaw.sqlite`);
  const both = await ctl(null, ["import", "openclaw", folder.path, "--json"]);
  expect(JSON.parse(both.out).schedules.map(({ name }: { name: string }) => name)).toEqual([
    "digest",
    "often",
    "off",
  ]);
  expect(both.err).toContain("  cron/jobs.json: state/openclaw.sqlite has the current schedules\n");
});

it("import reads JSON with comments, commas at the end, bare keys and single quotes", async () => {
  await using folder = await createTempDir();
  await Deno.writeTextFile(
    `${folder.path}/openclaw.json`,
    `// the agents
    { agents: { list: [{ id: 'main', name: 'A "b" // c', }, ], }, /* no
    more */ channels: { telegram: { allowFrom: [42, "tg:43",], botToken: "\${BOT}" } },
    authKind: "telegram", }`,
  );
  const { code, out, err } = await ctl(null, ["import", "openclaw", folder.path, "--json"]);
  expect([code, JSON.parse(out).workers]).toEqual([0, [{ name: 'A "b" // c' }]]);
  expect(err).toContain('allow:\n        - "42"\n        - "43"');
  expect(err).toContain("svc ctl secret set openclaw-telegram-token");
});

// Control characters of terminals, as one character and as two, and a character that reverses text.
const EVIL = "\u009b31mred\u202e\u001b[2J\n\ud800";
// deno-lint-ignore no-control-regex
const DRIVES = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e]/;

it("import makes names with control characters, and those of prototypes, harmless", async () => {
  await using app = await openWithAgents();
  await using folder = await createTempDir();
  const server = { command: "npx", env: { ["__proto__"]: "1", A: "secret:other", constructor: EVIL } };
  const named = (value: object) =>
    JSON.parse(
      `{"__proto__": 0, "constructor": 0, ${JSON.stringify(EVIL)}: 0}`,
      (key, one) => key === "" ? one : value,
    );
  await Deno.writeTextFile(
    `${folder.path}/openclaw.json`,
    JSON.stringify({
      agents: { entries: named({ name: EVIL, workspace: `/${EVIL}` }) },
      mcp: { servers: named(server) },
      channels: { telegram: { allowFrom: [EVIL], accounts: named({ botToken: EVIL }) }, ...named({}) },
      [EVIL]: EVIL,
    }),
  );
  const { code, out, err } = await ctl(app, ["import", "openclaw", folder.path, "--with-secrets"], {
    terminal: true,
  });
  expect([code, out + err]).toEqual([0, expect.not.stringMatching(DRIVES)]);
  expect(out).not.toContain("secret:other");
  // No secret can have that value, so a person sets another one.
  for (const [, name] of err.matchAll(/secret set (\S+)/g)) {
    await app.call(`PUT /api/secrets/${name}`, { value: "set-by-hand" });
  }
  const applied = await ctl(app, ["apply", "-f", "-"], { stdin: out });
  expect([applied.code, applied.err]).toEqual([0, ""]);
  expect((await app.call("GET /api/workers")).length).toBe(3);
});
