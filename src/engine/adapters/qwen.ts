import { join } from "node:path";
import type { Adapter, AgentEvent, EngineFile, Line, Order } from "../protocol/adapter.ts";
import { toolServer } from "./gemini.ts";
import { failureFrom, failureOfKind, lastWords } from "../protocol/failure.ts";
import { mergedJson } from "../protocol/json_file.ts";
import { numberAt, objectAt, textAt } from "../protocol/json_fields.ts";
import { assistantEvents, toolResults } from "../protocol/assistant_messages.ts";

/** Qwen Code: `qwen` with a stream of JSON lines like those of Claude Code (facts, engines 7). */
export const qwen: Adapter = {
  driver: "agent",
  kind: "qwen",
  program: "qwen",
  noise: /^Ripgrep not available/,
  measured: { package: "@qwen-code/qwen-code", version: "0.24.4" },
  needs: "Node 22 or newer",
  plansSession: true,
  counts: { live: false, cost: false },
  login: {
    variables: ["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"],
    home: ".qwen",
    files: ["oauth_creds.json"],
    advice: "set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL (engines.<name>.env)",
  },
  variables: ["OPENAI_BASE_URL", "OPENAI_MODEL"],
  reservedFlags: [
    "-p",
    "--prompt",
    "-i",
    "--prompt-interactive",
    "-o",
    "--output-format",
    "--input-format",
    "--session-id",
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--fork-session",
    "--acp",
    "-l",
    "--list-extensions",
    "--chat-recording",
    "--worktree",
    "--input-file",
  ],
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs, env } = order;
    return {
      args: [
        "--output-format",
        "stream-json",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(env.OPENAI_API_KEY ? ["--auth-type", "openai"] : []),
        ...(model === "" ? [] : ["--model", model]),
        ...permissionArgs(order),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { QWEN_HOME: stateDir, QWEN_RUNTIME_DIR: stateDir }),
        QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
      },
      fixedEnv: {},
      stdin: prompt,
      files: stateDir === null ? [] : [settingsFile(stateDir, order)],
      usageFile: null,
    };
  },
  events(line) {
    const type = textAt(line, "type");
    if (type === "system" && textAt(line, "subtype") === "init") {
      return [{ kind: "session", id: textAt(line, "session_id") }];
    }
    if (type === "assistant") return assistantEvents(line);
    if (type === "user") return toolResults(line);
    if (type === "result") return resultEvents(line);
    return [];
  },
  stderrEvents(line) {
    const words = /^Retrying in \d+s \(attempt [^)]*\): (.*)/.exec(line)?.[1];
    return words === undefined ? [] : [{ kind: "failure", failure: failureFrom(words, "model") }];
  },
  failureOf({ stderr, resume }) {
    const words = lastWords(stderr);
    if (resume && /No saved session found|session.*(not found|does not exist)/i.test(stderr)) {
      return failureOfKind("unknown_session", words);
    }
    if (/already (exists|in use)/i.test(stderr)) return failureOfKind("session_exists", words);
    if (/Unknown argument/i.test(stderr)) return failureOfKind("setup", words);
    return failureFrom(words, "crashed");
  },
};

function permissionArgs({ permissions, ctl }: Order): string[] {
  if (permissions === "full") return ["--approval-mode", "yolo"];
  const svc = ["svc ctl", `${ctl} ctl`].flatMap((
    words,
  ) => ["--allowed-tools", `run_shell_command(${words})`]);
  return ["--approval-mode", permissions === "edit" ? "auto-edit" : "default", ...svc];
}

function settingsFile(stateDir: string, { tools }: Order): EngineFile {
  const ours = {
    general: { disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    // Its own memory makes extra requests; the service has a memory.
    memory: { enableManagedAutoMemory: false },
    ...(tools === null ? {} : { mcpServers: { svc: toolServer(tools) } }),
  };
  return { path: join(stateDir, "settings.json"), content: (present) => mergedJson({}, present, ours) };
}

function resultEvents(line: Line): AgentEvent[] {
  const usage = objectAt(line, "usage");
  const tokens = {
    input_tokens: numberAt(usage, "input_tokens"),
    output_tokens: numberAt(usage, "output_tokens"),
  };
  const counted: AgentEvent[] = line.usage === undefined
    ? []
    : [{ kind: "usage", span: "session", usage: tokens }];
  if (line.is_error !== true) {
    return [...counted, { kind: "done", ok: true, text: textAt(line, "result"), failure: null }];
  }
  const words = textAt(objectAt(line, "error"), "message") || textAt(line, "result") ||
    textAt(line, "subtype");
  return [...counted, { kind: "done", ok: false, text: "", failure: failureFrom(words, "model") }];
}
