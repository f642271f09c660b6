import { dirname, join } from "node:path";
import {
  type Adapter,
  type AgentEvent,
  BRIDGE_VARIABLES,
  GATEWAY_KEY,
  type Line,
  type Order,
} from "../protocol/adapter.ts";
import { CodexDialogue, parseWindows, stripShell } from "../protocol/codex_dialogue.ts";
import { classifyFailure } from "../protocol/failure.ts";
import {
  formatContent,
  formatInput,
  getList,
  getNumber,
  getObject,
  getText,
  parseObject,
} from "../protocol/json_fields.ts";

/** Codex CLI: `codex exec` with a stream of JSON lines (facts, engines 4). */
export const codex: Adapter = {
  driver: "agent",
  kind: "codex",
  program: "codex",
  tested: { package: "@openai/codex", version: "0.169.0" },
  asks: true,
  providerHosts: ["api.openai.com", "chatgpt.com", "auth.openai.com"],
  login: {
    variables: ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"],
    home: ".codex",
    files: ["auth.json"],
    advice: "set CODEX_API_KEY, or log in with: codex login, and share its state (state: shared)",
  },
  gateways: ["openai"],
  variables: ["OPENAI_API_KEY"],
  // `codex exec` looks only in directories that other runs share.
  findsSkills: (_permissions, stays) => stays,
  reservedFlags: ["--json", "--color", "-C", "--cd", "--ephemeral", "--worktree"],
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs } = order;
    return {
      args: [
        "exec",
        "--json",
        "--skip-git-repo-check",
        ...(order.permissions === "ask" ? ["--ignore-user-config", "--ignore-rules"] : []),
        // A login shell reads /etc/profile, which may replace PATH, and then svc is not found (facts, engines 2.9).
        ...formatSettings(["allow_login_shell=false", "analytics.enabled=false"]),
        ...DISABLED,
        ...(model === "" ? [] : ["--model", model]),
        ...buildPermissionArgs(order),
        ...buildToolArgs(order),
        ...buildServerArgs(order),
        ...(order.schema === null ? [] : ["--output-schema", resolveSchemaFile(order)]),
        ...extraArgs,
        ...buildGatewayArgs(order),
        // `resume` comes last, because it does not accept the flags above.
        ...(resume ? ["resume", sessionId] : []),
        "-",
      ],
      env: stateDir === null ? {} : { CODEX_HOME: stateDir },
      files: order.schema === null
        ? []
        : [{ path: resolveSchemaFile(order), content: () => JSON.stringify(order.schema) }],
    };
  },
  // A turn of a thread, with the events of the app-server (decision 0011).
  listForeignSettings: ({ stateDir, env }) => {
    const home = stateDir ?? (env.CODEX_HOME || join(env.HOME ?? "", ".codex"));
    const isHarmless = (text: string) => text.split("\n").every((line) => TRUST_LINE.test(line));
    return [
      { path: join(home, "config.toml"), isHarmless },
      { path: join(home, "rules") },
    ];
  },
  open: {
    acceptsArgs: hasOnlySettings,
    buildCommand(order) {
      return {
        args: [
          "app-server",
          ...formatSettings(["allow_login_shell=false", "analytics.enabled=false"]),
          ...DISABLED,
          ...(order.permissions === "full"
            ? formatSettings(['sandbox_mode="danger-full-access"'])
            : buildPermissionArgs(order)),
          ...buildBridgeArgs(order),
          ...buildServerArgs(order),
          ...order.extraArgs,
          ...buildGatewayArgs(order),
        ],
        env: order.stateDir === null ? {} : { CODEX_HOME: order.stateDir },
      };
    },
    writesBeforeModel: true,
    showsWork: (text) => /"method":\s*"(?:turn|item)\/started"/.test(text),
    steers: true,
    startDialogue: (order, link) => new CodexDialogue(order, link, codex.parseLine),
  },
  parseLine(line) {
    const type = getText(line, "type");
    if (type === "thread.started") return [{ kind: "session", id: getText(line, "thread_id") }];
    if (type === "item.started") return parseStart(getObject(line, "item"));
    if (type === "item.completed") return parseItem(getObject(line, "item"));
    if (type === "error") return parseError(getText(line, "message"));
    if (type === "turn.completed") return [...parseUsage(getObject(line, "usage")), DONE];
    if (type === "turn.failed") {
      const words = getText(getObject(line, "error"), "message");
      return [{ kind: "done", ok: false, text: "", failure: classifyFailure(words, "model") }];
    }
    return [];
  },
  sessionLog: {
    // The id starts with the time of the session's start. The folder is named after that day, in the zone of the machine.
    folders: (sessionId) => {
      const at = parseInt(sessionId.replace("-", "").slice(0, 12), 16);
      const days = Number.isNaN(at)
        ? []
        : [-1, 0, 1].map((day) => new Date(at + day * 86_400_000).toISOString());
      return days.map((day) => join("sessions", ...day.slice(0, 10).split("-")));
    },
    isName: (name, sessionId) => name.endsWith(`-${sessionId}.jsonl`),
    windows: (tail) => {
      const [, json] = [...tail.matchAll(/"rate_limits":(\{.*\})\}\}$/gm)].at(-1) ?? [];
      return parseWindows(parseObject(json ?? "") ?? {}, ["used_percent", "window_minutes", "resets_at"]);
    },
  },
  endings: {
    unknown_session: /no rollout found/,
    setup: /unexpected argument|invalid value|Error loading config|required arguments/i,
  },
};

const DONE: AgentEvent = { kind: "done", ok: true, text: null, failure: null };

// A snapshot of the shell would write the variables of the run, secrets included, into the state.
const DISABLED = ["--disable", "plugins", "--disable", "shell_snapshot"];

function formatSettings(values: string[]): string[] {
  return values.flatMap((value) => ["-c", value]);
}

// An allow rule of a trusted project runs a command without a question and without a sandbox. Codex trusts a directory without an entry,
// and takes the entry of a parent, too. Without trust it ignores AGENTS.md as well.
function buildAskSettings(workDir: string): string[] {
  const projects = listProjects(workDir).map((path) => `${JSON.stringify(path)}={trust_level="untrusted"}`);
  // With `unified_exec_tty`, an agent could type into a program that a person has allowed, without another question.
  const off = ["hooks", "apps", "skill_mcp_dependency_install", "unified_exec_tty"]
    .map((name) => `features.${name}=false`);
  return [`projects={${projects.join(",")}}`, ...off];
}

// The directory with all its parents, also by the path without links.
function listProjects(workDir: string): string[] {
  try {
    return [...new Set([workDir, Deno.realPathSync(workDir)].flatMap(listAncestors))];
  } catch {
    return listAncestors(workDir);
  }
}

function listAncestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...listAncestors(parent)];
}

// A line that only marks a project as trusted, which Codex itself writes.
const TRUST_LINE = /^\s*(#.*|\[projects\."[^"]*"\]|\[projects\]|trust_level\s*=\s*"\w+")?\s*$/;

function buildPermissionArgs({ permissions, workDir }: Order): string[] {
  if (permissions === "full") return ["--dangerously-bypass-approvals-and-sandbox"];
  if (permissions === "read") return formatSettings(['sandbox_mode="read-only"']);
  return formatSettings([
    ...(permissions === "ask" ? buildAskSettings(workDir) : []),
    'sandbox_mode="workspace-write"',
    // `svc` needs the network to reach the service.
    "sandbox_workspace_write.network_access=true",
    // Each run has its own TMPDIR.
    "sandbox_workspace_write.exclude_slash_tmp=true",
  ]);
}

// Adds a provider, because the built-in one prefers a login in the state of the worker.
function buildGatewayArgs({ gateway }: Order): string[] {
  if (gateway === null) return [];
  const provider = `{name="svc",base_url=${
    JSON.stringify(`${gateway.url}/v1`)
  },env_key="${GATEWAY_KEY}",wire_api="responses"}`;
  return formatSettings(['model_provider="svc"', `model_providers.svc=${provider}`]);
}

function resolveSchemaFile({ inputDir }: Order): string {
  return join(inputDir, "schema.json");
}

function buildToolArgs({ tools }: Order): string[] {
  if (tools === null) return [];
  return formatSettings([
    `mcp_servers.svc.url="${tools.url}"`,
    `mcp_servers.svc.bearer_token_env_var="${tools.tokenVariable}"`,
    // No person can approve a call here. The token decides what is allowed.
    'mcp_servers.svc.default_tools_approval_mode="approve"',
  ]);
}

// Codex gives a server only the variables that its settings name.
function buildServerArgs({ servers, env, permissions }: Order): string[] {
  const mode = permissions === "ask" ? "prompt" : "approve";
  return formatSettings(servers.flatMap((server) => {
    const key = `mcp_servers.${server.name}`;
    const form = "program" in server
      ? [
        `${key}.command=${JSON.stringify(server.program)}`,
        `${key}.env_vars=${JSON.stringify(Object.keys(env))}`,
      ]
      : [
        `${key}.url=${JSON.stringify(server.url)}`,
        `${key}.env_http_headers=${formatTable(server.headers)}`,
      ];
    return [...form, `${key}.default_tools_approval_mode="${mode}"`];
  }));
}

function formatTable(values: Readonly<Record<string, string>>): string {
  const entries = Object.entries(values).map(([name, value]) =>
    `${JSON.stringify(name)}=${JSON.stringify(value)}`
  );
  return `{${entries.join(",")}}`;
}

// A process that stays has the environment of its first run. The bridge reads the token of the current run from a file.
function buildBridgeArgs({ tools, ctl, env }: Order): string[] {
  if (tools === null) return [];
  const own = BRIDGE_VARIABLES.map((name) => `${name}=${JSON.stringify(env[name] ?? "")}`).join(",");
  return formatSettings([
    `mcp_servers.svc.command=${JSON.stringify(ctl)}`,
    'mcp_servers.svc.args=["mcp"]',
    `mcp_servers.svc.env={${own}}`,
    'mcp_servers.svc.default_tools_approval_mode="approve"',
  ]);
}

const SETTING = /^(-c|--config|--enable|--disable)$/;

// `codex app-server` takes settings only; all other flags belong to `codex exec`.
function hasOnlySettings(args: readonly string[]): boolean {
  return args.every((arg, i) =>
    SETTING.test(arg) || /^(-c.|--(config|enable|disable)=)/.test(arg) || SETTING.test(args[i - 1] ?? "")
  );
}

/** The tool call of an item, or null when it is something else. */
function parseTool(item: Line): { name: string; input: string } | null {
  const type = getText(item, "type");
  if (type === "command_execution") return { name: "shell", input: stripShell(getText(item, "command")) };
  if (type === "mcp_tool_call") {
    const name = `${getText(item, "server")}.${getText(item, "tool")}`;
    return { name, input: formatInput(item.arguments) };
  }
  if (type === "file_change") {
    const changes = getList(item, "changes").map((change) =>
      `${getText(change, "kind")} ${getText(change, "path")}`
    );
    return { name: "edit", input: changes.join(", ") };
  }
  if (type === "web_search") return { name: "web search", input: getText(item, "query") };
  return null;
}

function parseStart(item: Line): AgentEvent[] {
  const tool = parseTool(item);
  return tool === null ? [] : [{ kind: "tool_start", ...tool }];
}

function parseItem(item: Line): AgentEvent[] {
  const type = getText(item, "type");
  if (type === "agent_message") return [{ kind: "text", text: getText(item, "text"), mode: "whole" }];
  // Despite its type, an `error` item is only a notice (facts, engines 2.14).
  if (type === "error") return [{ kind: "notice", text: getText(item, "message") }];
  if (parseTool(item) === null) return [];
  const ok = getText(item, "status") === "completed" && (item.error ?? null) === null;
  const output = type === "mcp_tool_call"
    ? formatContent(item.error ?? getObject(item, "result").content)
    : getText(item, "aggregated_output");
  return [{ kind: "tool_end", output, ok }];
}

function parseError(message: string): AgentEvent[] {
  if (!message.startsWith("Reconnecting")) {
    return [{ kind: "failure", failure: classifyFailure(message, "model") }];
  }
  const failure = classifyFailure(message, "model");
  return [failure.kind === "rate_limited" ? { kind: "failure", failure } : { kind: "notice", text: message }];
}

function parseUsage(usage: Line): AgentEvent[] {
  const tokens = {
    input_tokens: getNumber(usage, "input_tokens"),
    output_tokens: getNumber(usage, "output_tokens"),
  };
  return [{ kind: "usage", span: "session", usage: tokens }];
}
