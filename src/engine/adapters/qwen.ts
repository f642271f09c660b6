import { join } from "node:path";
import type { Adapter, AgentEvent, EngineFile, Line, Order } from "../protocol/adapter.ts";
import {
  buildPermissionArgs,
  buildServers,
  buildServerVariables,
  buildSkillArgs,
  dropServers,
  findSettingsFault,
} from "./gemini.ts";
import { classifyFailure } from "../protocol/failure.ts";
import { getNumber, getObject, getText, mergeJson } from "../protocol/json_fields.ts";
import { parseAssistantMessage, parseToolResults } from "../protocol/assistant_messages.ts";

/** Qwen Code: `qwen` with a stream of JSON lines like those of Claude Code (facts, engines 7). */
export const qwen: Adapter = {
  driver: "agent",
  kind: "qwen",
  program: "qwen",
  noise: /^Ripgrep not available/,
  tested: { package: "@qwen-code/qwen-code", version: "0.24.4" },
  needs: "Node 22 or newer",
  choosesSessionId: true,
  providerHosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "portal.qwen.ai", "chat.qwen.ai"],
  login: {
    variables: ["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"],
    home: ".qwen",
    files: ["oauth_creds.json"],
    advice: "set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL (engines.<name>.env)",
  },
  gateways: ["openai"],
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
  findServerFault: findSettingsFault,
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs, env, gateway } = order;
    return {
      args: [
        "--output-format",
        "stream-json",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(env.OPENAI_API_KEY || gateway !== null ? ["--auth-type", "openai"] : []),
        ...(model === "" ? [] : ["--model", model]),
        ...buildPermissionArgs(order, "auto-edit"),
        ...buildSkillArgs(order),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { QWEN_HOME: stateDir, QWEN_RUNTIME_DIR: stateDir }),
        QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
      },
      fixedEnv: {
        ...(gateway === null ? {} : { OPENAI_BASE_URL: `${gateway.url}/v1`, OPENAI_API_KEY: gateway.key }),
        ...buildServerVariables(order),
      },
      files: stateDir === null ? [] : [buildSettingsFile(stateDir, order)],
    };
  },
  parseLine(line) {
    const type = getText(line, "type");
    if (type === "system" && getText(line, "subtype") === "init") {
      return [{ kind: "session", id: getText(line, "session_id") }];
    }
    if (type === "assistant") return parseAssistantMessage(line);
    if (type === "user") return parseToolResults(line);
    if (type === "result") return parseResult(line);
    return [];
  },
  parseStderr(line) {
    const words = /^Retrying in \d+s \(attempt [^)]*\): (.*)/.exec(line)?.[1];
    return words === undefined ? [] : [{ kind: "failure", failure: classifyFailure(words, "model") }];
  },
  endings: {
    unknown_session: /No saved session found|session.*(not found|does not exist)/i,
    session_exists: /already (exists|in use)/i,
    setup: /Unknown argument/i,
  },
};

function buildSettingsFile(stateDir: string, order: Order): EngineFile {
  const ours = {
    general: { disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    // Qwen's memory makes extra requests, and the service has a memory already.
    memory: { enableManagedAutoMemory: false },
    // Without this, the agent has to search for the tools of many servers first.
    mcpServers: buildServers(order, { alwaysLoadTools: true }),
  };
  return {
    path: join(stateDir, "settings.json"),
    content: (present) => mergeJson({}, dropServers(present, order), ours),
  };
}

function parseResult(line: Line): AgentEvent[] {
  const usage = getObject(line, "usage");
  const tokens = {
    input_tokens: getNumber(usage, "input_tokens"),
    output_tokens: getNumber(usage, "output_tokens"),
  };
  const counted: AgentEvent[] = line.usage === undefined
    ? []
    : [{ kind: "usage", span: "session", usage: tokens }];
  if (line.is_error !== true) {
    return [...counted, { kind: "done", ok: true, text: getText(line, "result"), failure: null }];
  }
  const words = getText(getObject(line, "error"), "message") || getText(line, "result") ||
    getText(line, "subtype");
  return [...counted, { kind: "done", ok: false, text: "", failure: classifyFailure(words, "model") }];
}
