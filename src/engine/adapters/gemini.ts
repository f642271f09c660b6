import { join } from "node:path";
import type { Adapter, AgentEvent, EngineFile, Line, Order, ToolServer } from "../protocol/adapter.ts";
import { failureFrom, failureOfKind, lastWords } from "../protocol/failure.ts";
import { mergedJson } from "../protocol/json_file.ts";
import { inputText, numberAt, objectAt, textAt } from "../protocol/json_fields.ts";

/** Gemini CLI: `gemini` with a stream of JSON lines (facts, engines 5). */
export const gemini: Adapter = {
  driver: "agent",
  kind: "gemini",
  program: "gemini",
  noise:
    /^(Warning: (Basic terminal|256-color)|YOLO mode is enabled|Ripgrep is not available|\s+at .*(file|node):)/,
  measured: { package: "@google/gemini-cli", version: "0.61.0" },
  needs: "Node 20 or newer",
  plansSession: true,
  counts: { live: false, cost: false },
  login: {
    variables: ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GENAI_USE_GCA"],
    home: "",
    files: [".gemini/oauth_creds.json"],
    advice: "set GEMINI_API_KEY, or log in by starting gemini once, and share its state (state: shared)",
  },
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
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs } = order;
    return {
      args: [
        "--output-format",
        "stream-json",
        "--skip-trust",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(model === "" ? [] : ["--model", model]),
        ...permissionArgs(order),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { GEMINI_CLI_HOME: stateDir }),
        // Without this it starts a second Node process.
        GEMINI_CLI_NO_RELAUNCH: "true",
      },
      fixedEnv: {},
      stdin: prompt,
      files: stateDir === null ? [] : [settingsFile(stateDir, order)],
      usageFile: null,
    };
  },
  events(line) {
    const type = textAt(line, "type");
    if (type === "init") return [{ kind: "session", id: textAt(line, "session_id") }];
    if (type === "message" && textAt(line, "role") === "assistant") {
      return [{ kind: "text", text: textAt(line, "content"), mode: "piece" }];
    }
    if (type === "tool_use") {
      return [{ kind: "tool_start", name: textAt(line, "tool_name"), input: inputText(line.parameters) }];
    }
    if (type === "tool_result") {
      const words = textAt(line, "output") || textAt(objectAt(line, "error"), "message");
      return [{ kind: "tool_end", output: words, ok: textAt(line, "status") === "success" }];
    }
    if (type === "error") return [{ kind: "notice", text: textAt(line, "message") }];
    if (type === "result") return [...usageEvents(objectAt(line, "stats")), resultEvent(line)];
    return [];
  },
  stderrEvents(line) {
    const waits = /^Attempt \d+ failed with status 429\b/.test(line);
    return waits ? [{ kind: "failure", failure: failureOfKind("rate_limited", line) }] : [];
  },
  failureOf({ stderr, resume }) {
    const words = lastWords(stderr);
    if (
      resume && /Invalid session identifier|No previous sessions found|Error resuming session/.test(stderr)
    ) {
      return failureOfKind("unknown_session", words);
    }
    if (/already exists\. Use --resume/.test(stderr)) return failureOfKind("session_exists", words);
    if (/Unknown argument|untrusted|not a trusted/i.test(stderr)) return failureOfKind("setup", words);
    return failureFrom(words, "crashed");
  },
};

function permissionArgs({ permissions, ctl }: Order): string[] {
  if (permissions === "full") return ["--approval-mode", "yolo"];
  const svc = ["svc ctl", `${ctl} ctl`].flatMap((
    words,
  ) => ["--allowed-tools", `run_shell_command(${words})`]);
  return ["--approval-mode", permissions === "edit" ? "auto_edit" : "default", ...svc];
}

// Settings that somebody made in the state directory stay, unless they would break an unattended run.
function settingsFile(stateDir: string, { env, tools }: Order): EngineFile {
  const login = env.GEMINI_API_KEY ? { security: { auth: { selectedType: "gemini-api-key" } } } : {};
  const ours = {
    general: {
      enableAutoUpdate: false,
      enableAutoUpdateNotification: false,
      // The cleanup deletes sessions that it cannot read.
      sessionRetention: { enabled: false },
    },
    privacy: { usageStatisticsEnabled: false },
    ...(tools === null ? {} : { mcpServers: { svc: toolServer(tools) } }),
  };
  return {
    path: join(stateDir, ".gemini", "settings.json"),
    content: (present) => mergedJson(login, present, ours),
  };
}

/** The service's tools in the settings of Gemini and its fork. The file outlives the run, so it names the token's variable. */
export function toolServer({ url, tokenVariable }: ToolServer): object {
  return { httpUrl: url, headers: { Authorization: `Bearer $${tokenVariable}` }, trust: true };
}

function resultEvent(line: Line): AgentEvent {
  if (textAt(line, "status") === "success") return { kind: "done", ok: true, text: null, failure: null };
  const words = textAt(objectAt(line, "error"), "message");
  return { kind: "done", ok: false, text: "", failure: failureFrom(words, "model") };
}

function usageEvents(stats: Line): AgentEvent[] {
  const input_tokens = numberAt(stats, "input_tokens");
  // output_tokens does not include reasoning.
  const output_tokens = numberAt(stats, "total_tokens") - input_tokens;
  return [{ kind: "usage", span: "run", usage: { input_tokens, output_tokens } }];
}
