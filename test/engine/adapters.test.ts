import { describe, expect, it } from "vitest";
import type { Adapter, AgentEvent, Order } from "../../src/engine/protocol/adapter.ts";
import { ADAPTERS as ALL, needsNoConfiguration } from "../../src/engine/kinds.ts";
import { formatInstall } from "../../src/engine/availability.ts";
import { classifyEnd, classifyFailure } from "../../src/engine/protocol/failure.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import { codex } from "../../src/engine/adapters/codex.ts";
import { copilot } from "../../src/engine/adapters/copilot.ts";
import { gemini } from "../../src/engine/adapters/gemini.ts";
import { goose } from "../../src/engine/adapters/goose.ts";
import { opencode } from "../../src/engine/adapters/opencode.ts";
import { qwen } from "../../src/engine/adapters/qwen.ts";
import { PINS } from "../engines/pins.ts";

type Tested = Adapter & { tested: NonNullable<Adapter["tested"]> };
// Kind acp may name any program; see test/engine/acp.test.ts.
const ADAPTERS = ALL.filter((adapter): adapter is Tested =>
  adapter.driver === "agent" && adapter.tested !== null
);

/** Returns lines of the real CLI with the scripted model, without paths and unread fields. */
function recorded(kind: string, wanted: string): Record<string, unknown>[] {
  const text = Deno.readTextFileSync(new URL(`./recorded/${kind}.jsonl`, import.meta.url));
  return text.trim().split("\n").map((line) => JSON.parse(line)).filter((one) => one.case === wanted)
    .map((one) => one.line);
}

function eventsOf(adapter: Adapter, wanted: string): AgentEvent[] {
  return recorded(adapter.kind, wanted).flatMap((line) => adapter.parseLine(line));
}

/** Shortens events, without the notices. */
function brief(events: AgentEvent[]): string[] {
  return events.flatMap((event) => {
    switch (event.kind) {
      case "session":
        return [`session ${event.id === null ? "requested" : "reported"}`];
      case "text":
        return [`text ${event.text.split("\n")[0]}`];
      case "tool_start":
        return [`> ${event.name}: ${event.input}`];
      case "tool_end":
        return [`< ${event.ok} ${event.output.split("\n")[0]}`];
      case "usage":
        return [`${event.span} ${Object.values(event.usage).join(" ")}`];
      case "failure":
        return [`failure ${event.failure.kind}`];
      case "done":
        return [`done ${event.ok}${event.failure === null ? "" : ` ${event.failure.kind}`}`];
      default:
        return [];
    }
  });
}

const COMMAND = "echo hi > out.txt && cat out.txt";

describe("adapters: a run that calls a tool, as recorded (facts, engines 2)", () => {
  it.each<[Adapter, string[]]>([
    [claude, [
      "session reported",
      "step 150 1",
      "text I write it now.",
      "step 150 1",
      `> Bash: ${COMMAND}`,
      "< true hi",
      "step 150 1",
      "text STUB-OK final answer | tool output: hi",
      "run 300 80",
      "session 0.002612",
      "done true",
    ]],
    [codex, [
      "session reported",
      "text I write it now.",
      `> shell: ${COMMAND}`,
      "< true hi",
      "text STUB-OK final answer | tool output: Script completed",
      "session 300 80",
      "done true",
    ]],
    [gemini, [
      "session reported",
      "text I write it now.",
      `> run_shell_command: ${COMMAND}`,
      "< true hi",
      "text STUB-OK final answer | tool output: <",
      "text untrusted_context>",
      "text  Group PGID: 15",
      "run 300 80",
      "done true",
    ]],
    [opencode, [
      "session reported",
      "text I write it now.",
      `> bash: ${COMMAND}`,
      "< true hi",
      "step 150 40 0.00096",
      "session reported",
      "text STUB-OK final answer | tool output: hi",
      "step 150 40 0.00096",
      "done true",
    ]],
    [qwen, [
      "session reported",
      "text I write it now.",
      `> run_shell_command: ${COMMAND}`,
      "< true hi",
      `text STUB-OK final answer | tool output: Command: ${COMMAND}`,
      "session 300 80",
      "done true",
    ]],
    [copilot, [
      "session requested",
      "text I write it now.",
      `> bash: ${COMMAND}`,
      "< true hi",
      "text STUB-OK final answer | tool output: hi",
      "done true",
    ]],
    [goose, [
      "session requested",
      "text I write it now.",
      "session requested",
      `> shell: ${COMMAND}`,
      "session requested",
      "< true hi",
      "session requested",
      "text STUB-OK final",
      "session requested",
      "text  answer | too",
      "session requested",
      "text l output: hi",
      "session 300 80",
      "done true",
    ]],
  ])("$kind", (adapter, expected) => {
    expect(brief(eventsOf(adapter, "tool"))).toEqual(expected);
  });

  it("copilot reports its usage in a file, for all models", () => {
    const model = { usage: { inputTokens: 150, outputTokens: 40, cacheReadTokens: 30 } };
    const text = JSON.stringify({ modelMetrics: { "gpt-4.1": model, "gpt-5.4": model } });
    expect(brief(copilot.parseUsageFile?.(text) ?? [])).toEqual(["session 300 80"]);
    expect(copilot.parseUsageFile?.("not json")).toEqual([]);
  });
});

describe("adapters: failures (facts, engines 2)", () => {
  it.each(ADAPTERS)(
    "$kind: the matrix installs the tested release",
    (adapter) => {
      const { version, release = version } = adapter.tested;
      expect(PINS.find(({ kind }) => kind === adapter.kind)).toMatchObject({
        version,
        package: expect.stringContaining(`@${release}`),
      });
    },
  );

  it.each(ADAPTERS)("$kind reports a refused login", (adapter) => {
    const events = eventsOf(adapter, "auth");
    const failures = events.flatMap((event) =>
      event.kind === "failure" || event.kind === "done" ? event.failure ?? [] : []
    );
    expect(failures.map(({ kind }) => kind)).toContain("auth");
    expect(failures.every(({ kind }) => kind === "auth")).toBe(true);
    expect(failures[0]?.words).toMatch(/401/);
  });

  // Real stderr of each CLI when it resumes a missing session.
  const gone = "8092a207-ff21-4972-a350-ef4222416ef3";
  it.each<[Adapter, string]>([
    [
      codex,
      `Error: thread/resume: thread/resume failed: no rollout found for thread id ${gone} (code -32600)`,
    ],
    [gemini, "Error resuming session: No previous sessions found for this project."],
    [opencode, "Error: Session not found"],
    [
      qwen,
      `No saved session found with ID ${gone}. Run \`qwen --resume\` without an ID to choose from existing sessions.`,
    ],
    [
      copilot,
      `Error: No session, task, or name matched '${gone}'.\nTo start a new session with ID:   copilot --session-id=<valid-uuid>`,
    ],
    [goose, `Error: No session found with name '${gone}'`],
  ])("$kind: a missing session is reported as unknown_session", (adapter, stderr) => {
    expect(classifyEnd(adapter.endings, stderr, true).kind).toBe("unknown_session");
  });

  it("claude reports a missing session in its result", () => {
    expect(brief(eventsOf(claude, "unknown")).at(-1)).toBe("done false unknown_session");
  });

  it.each<[Adapter, string, string]>([
    [claude, `Error: Session ID ${gone} is already in use.`, "session_exists"],
    [
      claude,
      "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons",
      "setup",
    ],
    [claude, "error: unknown option '--bogus'", "setup"],
    [codex, "error: unexpected argument '--bogus' found\n\nFor more information, try '--help'.", "setup"],
    [gemini, `Error: Session "${gone}" already exists. Use --resume`, "session_exists"],
    [gemini, "Invalid auth method selected.", "auth"],
    [qwen, "Unknown argument: bogus", "setup"],
    [opencode, "Segmentation fault", "crashed"],
    [goose, "", "crashed"],
  ])("classifyEnd() finds the kind of a failure in stderr (%#)", (adapter, stderr, kind) => {
    expect(classifyEnd(adapter.endings, stderr, false).kind).toBe(kind);
  });

  it("a rate limit includes its end: as a time for claude, in the message for the others", () => {
    const info = { status: "rejected", resetsAt: 1_795_271_819, rateLimitType: "five_hour" };
    expect(claude.parseLine({ type: "rate_limit_event", rate_limit_info: info })).toEqual([{
      kind: "windows",
      windows: [{ name: "five_hour", utilization: 1, resets_at: 1_795_271_819_000 }],
    }, {
      kind: "failure",
      failure: {
        kind: "rate_limited",
        words: "the five hour limit is reached",
        reset: { at: 1_795_271_819_000 },
      },
    }]);
    expect(
      claude.parseLine({ type: "rate_limit_event", rate_limit_info: { ...info, status: "allowed_warning" } }),
    )
      .toEqual([]);
    const message =
      "You’ve hit your usage limit. Visit the site to purchase more credits or try again at 2:38 PM.";
    expect(codex.parseLine({ type: "turn.failed", error: { message } })).toMatchObject([
      { kind: "done", failure: { kind: "rate_limited", reset: { cron: "38 14 * * *" } } },
    ]);
    const waiting = "Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many JsonRpcClient)";
    expect(brief(codex.parseLine({ type: "error", message: waiting }))).toEqual(["failure rate_limited"]);
    const line = "Attempt 2 failed with status 429. Retrying with backoff... _ApiError: {}";
    expect(brief(gemini.parseStderr?.(line) ?? [])).toEqual(["failure rate_limited"]);
    expect(
      brief(qwen.parseStderr?.("Retrying in 60s (attempt 1/10): [API Error: 429 Too many requests]") ?? []),
    )
      .toEqual(["failure rate_limited"]);
    const log =
      'level=ERROR message="stream error" session.id=ses_e01 small=false mode=primary error.error="Rate limit reached"';
    expect(brief(opencode.parseStderr?.(log) ?? [])).toEqual(["session reported", "failure rate_limited"]);
  });

  it("reads the words of a failure in linear time, also with a long gap", () => {
    const words = `Ran into this error: x${" ".repeat(200_000)}y`;
    const message = { id: null, content: [{ type: "text", text: words }] };
    const started = performance.now();
    expect(brief(goose.parseLine({ type: "message", message }))).toContain("failure model");
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(classifyFailure(" one \n \r\n\n two  three\n", "model").words).toBe("one | two  three");
  });

  it("notices of an engine are not failures", () => {
    const item = {
      type: "error",
      message: "Model metadata for `x` not found. Defaulting to fallback metadata",
    };
    expect(codex.parseLine({ type: "item.completed", item })).toEqual([{
      kind: "notice",
      text: item.message,
    }]);
    expect(gemini.noise?.test("YOLO mode is enabled. All tool calls will be automatically approved.")).toBe(
      true,
    );
    expect(gemini.noise?.test("Error when talking to the model")).toBe(false);
  });
});

const ORDER: Order = {
  sessionId: "8092a207-ff21-4972-a350-ef4222416ef3",
  resume: false,
  prompt: "-- the prompt 'quoted'",
  workDir: "/work",
  inputDir: "/run",
  outputDir: "/run",
  stateDir: "/state",
  ctl: "/data/bin/svc",
  model: "m1",
  permissions: "edit",
  askTimeoutMs: 60_000,
  mask: (text) => text,
  extraArgs: ["--extra", "x"],
  root: true,
  env: {},
  tools: null,
  gateway: null,
  servers: [],
  skills: null,
  schema: null,
};

describe("the registry of adapters (architecture)", () => {
  it("has every adapter once, and each kind is named after its file", () => {
    const folder = new URL("../../src/engine/adapters/", import.meta.url);
    const files = [...Deno.readDirSync(folder)].map((entry) => entry.name.replace(/\.ts$/, ""));
    expect(ALL.map(({ kind }) => kind).sort()).toEqual(files.sort());
  });

  it("requires a configuration only for engines without a program of their own", () => {
    expect(ALL.filter((adapter) => !needsNoConfiguration(adapter)).map(({ kind }) => kind)).toEqual([
      "acp",
      "command",
    ]);
  });
});

describe("adapters: commands (contract 4.7, contract 7)", () => {
  it.each(ADAPTERS)(
    "$kind: passes no prompt in an argument, and the operator's arguments after ours",
    (adapter) => {
      for (const resume of [false, true]) {
        const { args, env } = adapter.buildCommand({ ...ORDER, resume });
        expect(args.join(" ")).not.toContain("the prompt");
        expect(args.filter((arg) => arg.includes("m1"))).toHaveLength(1);
        const at = args.indexOf("--extra");
        expect(args[at + 1]).toBe("x");
        expect(args.slice(at + 2).join(" ")).toMatch(/^(|(resume \S+ )?-|--instructions -)$/);
        expect(resume ? args.join(" ").includes(ORDER.sessionId) : true).toBe(true);
        expect(Object.values(env).join(" ")).toContain("/state");
      }
    },
  );

  it.each(ADAPTERS)("$kind: keeps a shared state in its usual place", (adapter) => {
    const { env, fixedEnv, files = [] } = adapter.buildCommand({ ...ORDER, stateDir: null });
    expect(JSON.stringify([env, fixedEnv])).not.toContain("/state");
    expect(files.filter(({ path }) => !path.startsWith("/run/"))).toEqual([]);
  });

  it("claude: skips permissions only when everything is allowed, and hooks of the work directory otherwise", () => {
    const full = claude.buildCommand({ ...ORDER, permissions: "full" });
    expect(full.args).toContain("--dangerously-skip-permissions");
    expect(full.env.IS_SANDBOX).toBe("1");
    expect(claude.buildCommand({ ...ORDER, permissions: "full", root: false }).env.IS_SANDBOX)
      .toBeUndefined();
    for (const permissions of ["read", "edit"] as const) {
      const { args, env } = claude.buildCommand({ ...ORDER, permissions });
      expect(args.join(" ")).not.toMatch(/dangerously/);
      expect(args).toContain('{"disableAllHooks":true}');
      expect(env.IS_SANDBOX).toBeUndefined();
    }
  });

  it("gemini and qwen: existing settings are kept, unless they would break an unattended run", () => {
    const file = gemini.buildCommand({ ...ORDER, env: { GEMINI_API_KEY: "k" } }).files?.[0];
    const mine = {
      general: { enableAutoUpdate: true, vimMode: true },
      security: { auth: { selectedType: "oauth" } },
    };
    expect(JSON.parse(file?.content(JSON.stringify(mine)) ?? "")).toMatchObject({
      general: { enableAutoUpdate: false, vimMode: true },
      security: { auth: { selectedType: "oauth" } },
    });
    expect(JSON.parse(file?.content(null) ?? "")).toMatchObject({
      security: { auth: { selectedType: "gemini-api-key" } },
    });
    expect(file?.content("{ not json")).toBe("{ not json");
    expect(qwen.buildCommand(ORDER).files?.[0]?.path).toBe("/state/settings.json");
  });

  it("opencode: the operator's configuration is kept, except permissions", () => {
    const own = JSON.stringify({ provider: { stub: {} }, permission: { bash: "allow" }, share: "auto" });
    const { fixedEnv } = opencode.buildCommand({ ...ORDER, env: { OPENCODE_CONFIG_CONTENT: own } });
    expect(JSON.parse(fixedEnv?.OPENCODE_CONFIG_CONTENT ?? "")).toEqual({
      provider: { stub: {} },
      autoupdate: false,
      share: "disabled",
      permission: {
        edit: "allow",
        bash: { "*": "deny", "svc ctl *": "allow", "/data/bin/svc ctl *": "allow" },
        webfetch: "deny",
        external_directory: "deny",
      },
    });
  });
});

describe("the advice to install a missing engine", () => {
  it("names the tested version of the package with the program", () => {
    for (const adapter of ADAPTERS) {
      const { kind, tested } = adapter;
      const install = formatInstall(adapter);
      const pin = PINS.find((one) => one.kind === kind)?.package ?? "";
      const version = tested.release ?? tested.version;
      expect(pin).toContain(version);
      expect(install).toMatch(/^npm install -g \S+@\d+\.\d+\.\d+/);
      expect([kind, install]).toEqual([kind, expect.stringContaining(`@${version}`)]);
    }
    // The package named goose has another program.
    expect(formatInstall(goose)).toContain("@aaif/goose-binary-");
    expect([formatInstall(gemini), formatInstall(qwen)]).toEqual([
      expect.stringContaining("Node 20"),
      expect.stringContaining("Node 22"),
    ]);
  });
});

describe("adapters: the windows of a provider (contract 14)", () => {
  it("codex: windows come from the session file, whose folder is the day in the session id", () => {
    const log = codex.sessionLog;
    const id = "01a1fead-4ffc-78d1-bbb1-082948b5931e";
    expect(log?.folders(id)).toEqual([20, 21, 22].map((day) => `sessions/2026/11/${day}`));
    expect(log?.isName(`rollout-2026-11-20T22-38-00-${id}.jsonl`, id)).toBe(true);
    const recorded = (used: number) =>
      '{"timestamp":"t","type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":{"limit_id":"codex","limit_name":null,' +
      `"primary":{"used_percent":${used},"window_minutes":300,"resets_at":1795321690},"secondary":{"used_percent":30.0,` +
      '"window_minutes":10080,"resets_at":1795321690},"credits":null,"plan_type":null,"rate_limit_reached_type":null}}}';
    expect(log?.windows(`half a line\n${recorded(12)}\n${recorded(85)}\n{"type":"other"}\n`)).toEqual([
      { name: "5h", utilization: 0.85, resets_at: 1_795_321_690_000 },
      { name: "7d", utilization: 0.3, resets_at: 1_795_321_690_000 },
    ]);
    expect(log?.windows("")).toEqual([]);
    expect(log?.windows('"rate_limits":{"primary":null}}}\n')).toEqual([]);
  });
});
