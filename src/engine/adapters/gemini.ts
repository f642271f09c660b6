import { join } from "node:path";
import type { Adapter, AgentEvent, EngineFile, Line, Order, ToolServer } from "../protocol/adapter.ts";
import { buildFailure, classifyFailure } from "../protocol/failure.ts";
import { formatInput, getNumber, getObject, getText, mergeJson } from "../protocol/json_fields.ts";

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
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { GEMINI_CLI_HOME: stateDir }),
        // Without this variable Gemini starts a second Node process.
        GEMINI_CLI_NO_RELAUNCH: "true",
      },
      ...(gateway === null ? {} : {
        fixedEnv: {
          GOOGLE_GEMINI_BASE_URL: gateway.url,
          GEMINI_API_KEY: gateway.key,
          GOOGLE_GENAI_USE_VERTEXAI: "false",
        },
      }),
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

// Existing settings in the state directory stay, unless they would break an unattended run.
function buildSettingsFile(stateDir: string, { env, tools, gateway }: Order): EngineFile {
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
    ...(tools === null ? {} : { mcpServers: { svc: buildToolServer(tools) } }),
  };
  return {
    path: join(stateDir, ".gemini", "settings.json"),
    content: (present) => mergeJson(login, present, ours),
  };
}

/** The service's tools in the settings of Gemini and its fork. The file outlives the run, so it names the token's variable. */
export function buildToolServer({ url, tokenVariable }: ToolServer): object {
  return { httpUrl: url, headers: { Authorization: `Bearer $${tokenVariable}` }, trust: true };
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
