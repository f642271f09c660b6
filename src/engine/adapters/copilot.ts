import { join } from "node:path";
import { findReplacedText } from "../../domain/workers/mcp_server.ts";
import type { Adapter, AgentEvent, Line, Order, WorkerServer } from "../protocol/adapter.ts";
import { classifyStatus } from "../protocol/failure.ts";
import {
  formatContent,
  formatInput,
  getNumber,
  getObject,
  getText,
  isObject,
  parseObject,
} from "../protocol/json_fields.ts";

/** GitHub Copilot CLI: `copilot` with a stream of JSON lines (facts, engines 8). */
export const copilot: Adapter = {
  driver: "agent",
  kind: "copilot",
  program: "copilot",
  tested: { package: "@github/copilot", version: "1.0.102" },
  choosesSessionId: true,
  providerHosts: ["api.github.com", "*.githubcopilot.com"],
  login: {
    variables: ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"],
    home: ".copilot",
    files: ["config.json"],
    advice:
      "set COPILOT_GITHUB_TOKEN, or a provider of your own: COPILOT_PROVIDER_BASE_URL (engines.<name>.env)",
  },
  gateways: ["anthropic", "openai"],
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
  findServerFault: (server) => findReplacedText(server, /\$/, "$"),
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs, outputDir } = order;
    const usageFile = join(outputDir, "usage.json");
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
        ...buildPermissionArgs(order),
        ...buildToolArgs(order),
        ...extraArgs,
      ],
      env: { ...(stateDir === null ? {} : { COPILOT_HOME: stateDir }), COPILOT_AUTO_UPDATE: "false" },
      ...buildGatewayVariables(order),
      files: hasTools(order) ? [{ path: resolveToolFile(order), content: () => buildToolConfig(order) }] : [],
      usageFile,
    };
  },
  parseLine(line) {
    const type = getText(line, "type");
    const data = getObject(line, "data");
    // Copilot reports its session only at the end. After this line the requested session exists.
    if (type === "user.message") return [{ kind: "session", id: null }];
    if (type === "assistant.message") return parseMessage(data);
    if (type === "tool.execution_start") {
      return [{ kind: "tool_start", name: getText(data, "toolName"), input: formatInput(data.arguments) }];
    }
    if (type === "tool.execution_complete") return parseToolEnd(data);
    if (type === "session.error") {
      const failure = classifyStatus(getNumber(data, "statusCode"), getText(data, "message"));
      return [{ kind: "failure", failure }];
    }
    if (type === "session.warning") return [{ kind: "notice", text: getText(data, "message") }];
    if (type === "result") {
      const ok = getNumber(line, "exitCode") === 0;
      return [{ kind: "done", ok, text: ok ? null : "", failure: null }];
    }
    return [];
  },
  endings: {
    unknown_session: /no session|session.*not found|could not find/i,
    setup: /unknown option|invalid value|unexpected argument/i,
  },
  parseUsageFile(text) {
    const metrics = getObject(parseObject(text) ?? {}, "modelMetrics");
    const used = Object.values(metrics).filter(isObject).map((model) => getObject(model, "usage"));
    if (used.length === 0) return [];
    const sum = (key: string) => used.reduce((total, usage) => total + getNumber(usage, key), 0);
    const usage = { input_tokens: sum("inputTokens"), output_tokens: sum("outputTokens") };
    return [{ kind: "usage", span: "session", usage }];
  },
};

function buildGatewayVariables({ gateway }: Order): { fixedEnv?: Record<string, string> } {
  if (gateway === null) return {};
  return {
    fixedEnv: {
      COPILOT_PROVIDER_TYPE: gateway.kind,
      COPILOT_PROVIDER_BASE_URL: gateway.kind === "openai" ? `${gateway.url}/v1` : gateway.url,
      COPILOT_PROVIDER_API_KEY: gateway.key,
    },
  };
}

function resolveToolFile({ inputDir }: Order): string {
  return join(inputDir, "mcp.json");
}

function hasTools({ tools, servers }: Order): boolean {
  return tools !== null || servers.length > 0;
}

function buildToolArgs(order: Order): string[] {
  if (!hasTools(order)) return [];
  const names = [...(order.tools === null ? [] : ["svc"]), ...order.servers.map(({ name }) => name)];
  return [
    "--additional-mcp-config",
    `@${resolveToolFile(order)}`,
    ...names.map((name) => `--allow-tool=${name}`),
  ];
}

function buildToolConfig({ tools, servers }: Order): string {
  const own = tools === null ? [] : [
    ["svc", {
      type: "http",
      url: tools.url,
      headers: { Authorization: `Bearer ${tools.token}` },
      tools: ["*"],
    }],
  ];
  const others = servers.map((server) => [server.name, { ...buildServer(server), tools: ["*"] }]);
  return JSON.stringify({ mcpServers: Object.fromEntries([...own, ...others]) });
}

// Copilot replaces `${NAME}` by the value of the variable.
function buildServer(server: WorkerServer): object {
  if ("program" in server) return { type: "local", command: server.program, args: [] };
  const headers = Object.entries(server.headers).map(([name, from]) => [name, `\${${from}}`]);
  return { type: "http", url: server.url, headers: Object.fromEntries(headers) };
}

function buildPermissionArgs({ permissions, ctl, skills }: Order): string[] {
  if (permissions === "full") return ["--allow-all"];
  const svc = [
    ...(skills === null ? [] : [`--add-dir=${skills.dir}`]),
    ...["--allow-tool=shell(svc:*)", `--allow-tool=shell(${ctl}:*)`],
  ];
  return permissions === "edit" ? ["--allow-tool=write", ...svc] : svc;
}

// Text before a tool call is not the answer; the tool call removes it again.
function parseMessage(data: Line): AgentEvent[] {
  const text = getText(data, "content");
  return text === "" ? [] : [{ kind: "text", text, mode: "part" }];
}

function parseToolEnd(data: Line): AgentEvent[] {
  const ok = data.success === true;
  const result = getObject(data, "result");
  const error = getObject(data, "error");
  const output = ok
    ? getText(result, "content")
    : getText(error, "message") || formatContent(result.content ?? "");
  return [{ kind: "tool_end", output, ok }];
}
