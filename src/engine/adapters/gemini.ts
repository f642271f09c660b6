import { basename, join } from "node:path";
import { findReplacedText, type McpServer } from "../../domain/workers/mcp_server.ts";
import type {
  Adapter,
  AgentEvent,
  EngineFile,
  Line,
  Order,
  ServerSettings,
  ToolServer,
  WorkerServer,
} from "../protocol/adapter.ts";
import { buildFailure, classifyFailure } from "../protocol/failure.ts";
import {
  formatInput,
  getNumber,
  getObject,
  getText,
  isObject,
  mergeJson,
  parseObject,
} from "../protocol/json_fields.ts";

/** Gemini CLI: `gemini` with a stream of JSON lines (facts, engines 5). */
export const gemini: Adapter = {
  driver: "agent",
  kind: "gemini",
  program: "gemini",
  noise:
    /^(Warning: (Basic terminal|256-color)|YOLO mode is enabled|Ripgrep is not available|\s+at .*(file|node):)/,
  tested: { package: "@google/gemini-cli", version: "0.61.0" },
  needs: "Node 20 or newer",
  choosesSessionId: true,
  providerHosts: [
    "generativelanguage.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "oauth2.googleapis.com",
  ],
  login: {
    variables: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_GCA"],
    home: "",
    files: [".gemini/oauth_creds.json"],
    advice: "set GEMINI_API_KEY, or log in by starting gemini once, and share its state (state: shared)",
  },
  // No kind with counted usage has Gemini's API.
  gateways: ["http"],
  variables: [
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_LOCATION",
  ],
  reservedFlags: [
    "-p",
    "--prompt",
    "-i",
    "--prompt-interactive",
    "-o",
    "--output-format",
    "--session-id",
    "-r",
    "--resume",
    "--session-file",
    "--acp",
    "--experimental-acp",
    "-l",
    "--list-extensions",
    "--list-sessions",
    "--delete-session",
    "-w",
    "--worktree",
  ],
  findServerFault: findSettingsFault,
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs, gateway } = order;
    return {
      args: [
        "--output-format",
        "stream-json",
        "--skip-trust",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(model === "" ? [] : ["--model", model]),
        ...buildPermissionArgs(order, "auto_edit"),
        ...buildSkillArgs(order),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { GEMINI_CLI_HOME: stateDir }),
        // Without this variable Gemini starts a second Node process.
        GEMINI_CLI_NO_RELAUNCH: "true",
      },
      fixedEnv: {
        ...(gateway === null ? {} : {
          GOOGLE_GEMINI_BASE_URL: gateway.url,
          GEMINI_API_KEY: gateway.key,
          GOOGLE_GENAI_USE_VERTEXAI: "false",
        }),
        ...buildServerVariables(order),
      },
      files: stateDir === null ? [] : [buildSettingsFile(stateDir, order)],
    };
  },
  parseLine(line) {
    const type = getText(line, "type");
    if (type === "init") return [{ kind: "session", id: getText(line, "session_id") }];
    if (type === "message" && getText(line, "role") === "assistant") {
      return [{ kind: "text", text: getText(line, "content"), mode: "piece" }];
    }
    if (type === "tool_use") {
      return [{ kind: "tool_start", name: getText(line, "tool_name"), input: formatInput(line.parameters) }];
    }
    if (type === "tool_result") {
      const words = getText(line, "output") || getText(getObject(line, "error"), "message");
      return [{ kind: "tool_end", output: words, ok: getText(line, "status") === "success" }];
    }
    if (type === "error") return [{ kind: "notice", text: getText(line, "message") }];
    if (type === "result") return [...parseUsage(getObject(line, "stats")), parseResult(line)];
    return [];
  },
  parseStderr(line) {
    const waits = /^Attempt \d+ failed with status 429\b/.test(line);
    return waits ? [{ kind: "failure", failure: buildFailure("rate_limited", line) }] : [];
  },
  endings: {
    unknown_session: /Invalid session identifier|No previous sessions found|Error resuming session/,
    session_exists: /already exists\. Use --resume/,
    setup: /Unknown argument|untrusted|not a trusted/i,
  },
};

/** Builds the permission flags of Gemini and its fork, whose edit modes have different names. */
export function buildPermissionArgs({ permissions, ctl }: Order, editMode: string): string[] {
  if (permissions === "full") return ["--approval-mode", "yolo"];
  const svc = ["svc ctl", `${ctl} ctl`].flatMap((
    words,
  ) => ["--allowed-tools", `run_shell_command(${words})`]);
  return ["--approval-mode", permissions === "edit" ? editMode : "default", ...svc];
}

/** Builds the arguments that let Gemini and its fork read the skills of the worker. */
export function buildSkillArgs({ skills }: Order): string[] {
  return skills === null ? [] : ["--include-directories", skills.dir];
}

// Existing settings in the state directory stay, unless they would break an unattended run.
function buildSettingsFile(stateDir: string, order: Order): EngineFile {
  const { env, gateway } = order;
  const login = env.GEMINI_API_KEY || gateway !== null
    ? { security: { auth: { selectedType: "gemini-api-key" } } }
    : {};
  const ours = {
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      // The cleanup deletes sessions that it cannot read.
      sessionRetention: { enabled: false },
    },
    privacy: { usageStatisticsEnabled: false },
    mcpServers: buildServers(order),
  };
  return {
    path: join(stateDir, ".gemini", "settings.json"),
    content: (present) => mergeJson(login, dropServers(present, order), ours),
  };
}

// The settings outlive the run, so they name the token's variable.
function buildToolServer({ url, tokenVariable }: ToolServer): object {
  return { httpUrl: url, headers: { Authorization: `Bearer $${tokenVariable}` } };
}

/** The directory of the scripts that start the worker's MCP servers. */
const SCRIPTS = "SVC_MCP_DIR";

/** Returns the variables that the MCP servers in the settings name. */
export function buildServerVariables({ servers, inputDir }: Order): Record<string, string> {
  return servers.length === 0 ? {} : { [SCRIPTS]: inputDir };
}

// The settings outlive a run, so the servers of this worker have a mark, and name variables instead of values.
const MARK = "A tool server of the worker";

/** Builds the MCP servers for the settings of Gemini and its fork. */
export function buildServers({ tools, servers }: Order, more: object = {}): object {
  const all: [string, object][] = [
    ...(tools === null ? [] : [["svc", buildToolServer(tools)] as [string, object]]),
    ...servers.map((one): [string, object] => [one.name, { ...buildServer(one), description: MARK }]),
  ];
  return Object.fromEntries(all.map(([name, server]) => [name, { ...server, trust: true, ...more }]));
}

function buildServer(server: WorkerServer): object {
  if ("program" in server) return { command: `$${SCRIPTS}/${basename(server.program)}` };
  const headers = Object.entries(server.headers).map(([name, from]) => [name, `$${from}`]);
  return { httpUrl: server.url, headers: Object.fromEntries(headers) };
}

/** Removes the servers that an earlier run of the worker added, and those that this run replaces. */
export function dropServers(present: string | null, { servers: own }: Order): string | null {
  const settings = parseObject(present ?? "");
  const servers = getObject(settings ?? {}, "mcpServers");
  const names = own.map(({ name }) => name);
  const kept = Object.entries(servers).filter(([name, one]) =>
    !names.includes(name) && (!isObject(one) || one.description !== MARK)
  );
  if (kept.length === Object.keys(servers).length) return present;
  return JSON.stringify({ ...settings, mcpServers: Object.fromEntries(kept) });
}

/** Returns why Gemini and its fork cannot have servers, or null. They take them from the settings only. */
export function findSettingsFault(server: McpServer, { state }: ServerSettings): string | null {
  if (state === "shared") return "takes MCP servers from its own settings only, because its state is shared";
  return findReplacedText(server, /\$/, "$");
}

function parseResult(line: Line): AgentEvent {
  if (getText(line, "status") === "success") return { kind: "done", ok: true, text: null, failure: null };
  const words = getText(getObject(line, "error"), "message");
  return { kind: "done", ok: false, text: "", failure: classifyFailure(words, "model") };
}

function parseUsage(stats: Line): AgentEvent[] {
  const input_tokens = getNumber(stats, "input_tokens");
  // output_tokens does not include reasoning.
  const output_tokens = getNumber(stats, "total_tokens") - input_tokens;
  return [{ kind: "usage", span: "run", usage: { input_tokens, output_tokens } }];
}
