import { join } from "node:path";
import type { Adapter, AgentEvent, Line, Order } from "../protocol/adapter.ts";
import { failureFrom, failureFromStatus, failureOfKind, lastWords } from "../protocol/failure.ts";
import { contentText, inputText, isObject, numberAt, objectAt, textAt } from "../protocol/json_fields.ts";

/** GitHub Copilot CLI: `copilot` with a stream of JSON lines (facts, engines 8). */
export const copilot: Adapter = {
  driver: "agent",
  kind: "copilot",
  program: "copilot",
  measured: { package: "@github/copilot", version: "1.0.102" },
  plansSession: true,
  counts: { live: false, cost: false },
  login: {
    variables: ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
    home: ".copilot",
    files: ["config.json"],
    advice:
      "set COPILOT_GITHUB_TOKEN, or a provider of your own: COPILOT_PROVIDER_BASE_URL (engines.<name>.env)",
  },
  variables: ["COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_TYPE", "COPILOT_MODEL"],
  reservedFlags: [
    "-p",
    "--prompt",
    "-i",
    "--interactive",
    "--output-format",
    "--stream",
    "--session-id",
    "--resume",
    "--continue",
    "-n",
    "--name",
    "--acp",
    "--usage-output-file",
    "--remote",
    "--environment-host",
    "-C",
    "-w",
    "--worktree",
    "--connect",
  ],
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs, runDir } = order;
    const usageFile = join(runDir, "usage.json");
    return {
      args: [
        "--output-format",
        "json",
        "--stream",
        "off",
        "--no-ask-user",
        // With --session-id it would start a new session when the old one is gone.
        resume ? `--resume=${sessionId}` : `--session-id=${sessionId}`,
        "--usage-output-file",
        usageFile,
        ...(model === "" ? [] : ["--model", model]),
        ...permissionArgs(order),
        ...(order.tools === null
          ? []
          : ["--additional-mcp-config", `@${toolFile(order)}`, "--allow-tool=svc"]),
        ...extraArgs,
      ],
      env: { ...(stateDir === null ? {} : { COPILOT_HOME: stateDir }), COPILOT_AUTO_UPDATE: "false" },
      fixedEnv: {},
      stdin: prompt,
      files: order.tools === null ? [] : [{ path: toolFile(order), content: () => toolConfig(order.tools) }],
      usageFile,
    };
  },
  events(line) {
    const type = textAt(line, "type");
    const data = objectAt(line, "data");
    // It reports its session only at the end; from here on the requested one exists.
    if (type === "user.message") return [{ kind: "session", id: null }];
    if (type === "assistant.message") return messageEvents(data);
    if (type === "tool.execution_start") {
      return [{ kind: "tool_start", name: textAt(data, "toolName"), input: inputText(data.arguments) }];
    }
    if (type === "tool.execution_complete") return toolEndEvents(data);
    if (type === "session.error") {
      const failure = failureFromStatus(numberAt(data, "statusCode"), textAt(data, "message"));
      return [{ kind: "failure", failure }];
    }
    if (type === "session.warning") return [{ kind: "notice", text: textAt(data, "message") }];
    if (type === "result") {
      const ok = numberAt(line, "exitCode") === 0;
      return [{ kind: "done", ok, text: ok ? null : "", failure: null }];
    }
    return [];
  },
  failureOf({ stderr, resume }) {
    const words = lastWords(stderr);
    if (resume && /no session|session.*not found|could not find/i.test(stderr)) {
      return failureOfKind("unknown_session", words);
    }
    if (/unknown option|invalid value|unexpected argument/i.test(stderr)) {
      return failureOfKind("setup", words);
    }
    return failureFrom(words, "crashed");
  },
  usageOf(text) {
    const metrics = objectAt(parsed(text), "modelMetrics");
    const used = Object.values(metrics).filter(isObject).map((model) => objectAt(model, "usage"));
    if (used.length === 0) return [];
    const sum = (key: string) => used.reduce((total, usage) => total + numberAt(usage, key), 0);
    const usage = { input_tokens: sum("inputTokens"), output_tokens: sum("outputTokens") };
    return [{ kind: "usage", span: "session", usage }];
  },
};

function toolFile({ runDir }: Order): string {
  return join(runDir, "mcp.json");
}

function toolConfig(tools: Order["tools"]): string {
  const headers = { Authorization: `Bearer ${tools?.token}` };
  return JSON.stringify({ mcpServers: { svc: { type: "http", url: tools?.url, headers, tools: ["*"] } } });
}

function permissionArgs({ permissions, ctl }: Order): string[] {
  if (permissions === "full") return ["--allow-all"];
  const svc = ["--allow-tool=shell(svc:*)", `--allow-tool=shell(${ctl}:*)`];
  return permissions === "edit" ? ["--allow-tool=write", ...svc] : svc;
}

// Text before a tool call is not the answer; the tool call removes it again.
function messageEvents(data: Line): AgentEvent[] {
  const text = textAt(data, "content");
  return text === "" ? [] : [{ kind: "text", text, mode: "part" }];
}

function toolEndEvents(data: Line): AgentEvent[] {
  const ok = data.success === true;
  const result = objectAt(data, "result");
  const error = objectAt(data, "error");
  const output = ok
    ? textAt(result, "content")
    : textAt(error, "message") || contentText(result.content ?? "");
  return [{ kind: "tool_end", output, ok }];
}

function parsed(text: string): Line {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}
