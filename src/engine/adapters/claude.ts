import { join } from "node:path";
import { findReplacedText } from "../../domain/workers/mcp_server.ts";
import { ClaudeDialogue } from "../protocol/claude_dialogue.ts";
import {
  type Adapter,
  type AgentEvent,
  BRIDGE_VARIABLES,
  type EngineFailure,
  type EngineFile,
  type Line,
  type Order,
  type WorkerServer,
} from "../protocol/adapter.ts";
import { buildFailure, classifyStatus } from "../protocol/failure.ts";
import { formatContent, getNumber, getObject, getText } from "../protocol/json_fields.ts";
import { parseAssistantMessage, parseToolResults } from "../protocol/assistant_messages.ts";

/** Claude Code: `claude -p` with a stream of JSON lines (facts, engines 3). */
export const claude: Adapter = {
  driver: "agent",
  kind: "claude",
  program: "claude",
  tested: { package: "@anthropic-ai/claude-code", version: "2.1.329" },
  choosesSessionId: true,
  reportsLiveUsage: true,
  reportsCost: true,
  asks: true,
  providerHosts: ["api.anthropic.com", "claude.ai", "platform.claude.com"],
  login: {
    variables: [
      "ANTHROPIC_API_KEY",
      "ANTHROPIC_AUTH_TOKEN",
      "CLAUDE_CODE_OAUTH_TOKEN",
      "CLAUDE_CODE_USE_BEDROCK",
      "CLAUDE_CODE_USE_VERTEX",
      "CLAUDE_CODE_USE_FOUNDRY",
    ],
    files: [".credentials.json"],
    home: ".claude",
    advice:
      "make a token with: claude setup-token, and set it as CLAUDE_CODE_OAUTH_TOKEN, or set ANTHROPIC_API_KEY",
  },
  gateways: ["anthropic"],
  variables: ["ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL"],
  reservedFlags: [
    "-p",
    "--print",
    "--output-format",
    "--input-format",
    "--session-id",
    "-r",
    "--resume",
    "-c",
    "--continue",
    "--fork-session",
    "--from-pr",
    "--no-session-persistence",
    "--teleport",
    "--cloud",
    "--bg",
    "--background",
    "--desktop",
    "--tmux",
    "--replay-user-messages",
    "--permission-prompt-tool",
    "-w",
    "--worktree",
  ],
  findServerFault: (server) => findReplacedText(server, /\$\{/, "${"),
  skillsFolder: ".claude/skills",
  // With `permissions: ask`, it reads no skills of any directory.
  findsSkills: (permissions) => permissions !== "ask",
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs, root, permissions } = order;
    return {
      args: [
        "--print",
        "--output-format=stream-json",
        "--verbose",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(model === "" ? [] : ["--model", model]),
        ...buildPermissionArgs(order),
        ...buildToolArgs(order),
        ...(order.skills === null ? [] : [`--add-dir=${order.skills.dir}`]),
        ...(order.schema === null ? [] : [`--json-schema=${JSON.stringify(order.schema)}`]),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { CLAUDE_CONFIG_DIR: stateDir }),
        // Updates and telemetry delay a run by seconds, especially behind a firewall.
        DISABLE_AUTOUPDATER: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        // Claude Code's ten retries take minutes and occupy a slot. The service's own retries do not (facts, engines 2.13).
        CLAUDE_CODE_MAX_RETRIES: "4",
        // As root, Claude Code skips permissions only in a sandbox.
        ...(root && permissions === "full" ? { IS_SANDBOX: "1" } : {}),
        // Without settings of the work directory, Claude Code reads its CLAUDE.md only as that of another directory.
        ...(permissions === "ask" ? { CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: "1" } : {}),
        // Without this the agent has to search for the service's tools first.
        ...(hasTools(order) ? { ENABLE_TOOL_SEARCH: "false" } : {}),
      },
      ...buildGatewayVariables(order),
      files: buildToolFiles(order, buildToolServer),
    };
  },
  // Each message on stdin is one turn with a separate result line (decision 0011).
  open: {
    buildCommand(order) {
      const command = claude.buildCommand(order);
      return {
        ...command,
        // A message that was taken up comes back with its uuid.
        args: [
          "--input-format=stream-json",
          "--replay-user-messages",
          ...command.args,
          ...(order.permissions === "ask" ? ["--permission-prompt-tool=stdio"] : []),
        ],
        // A background task that outlives its turn would start a turn without a request.
        env: { ...command.env, CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" },
        files: buildToolFiles(order, buildBridgeServer),
      };
    },
    writesBeforeModel: true,
    showsWork: (text) => /"type":"assistant"|"subtype":"init"/.test(text),
    steers: true,
    startDialogue: (_order, link) => new ClaudeDialogue(link, (line) => claude.parseLine(line)),
  },
  parseLine(line) {
    const type = getText(line, "type");
    if (type === "system") return parseSystem(line);
    if (type === "assistant") return parseAssistant(line);
    if (type === "user") return parseToolResults(line);
    if (type === "rate_limit_event") return parseLimit(getObject(line, "rate_limit_info"));
    if (type === "result") return parseResult(line);
    return [];
  },
  endings: {
    unknown_session: /No conversation found/,
    session_exists: /Session ID .* is already in use/,
    setup: /unknown option|cannot be used with root/,
  },
};

function buildGatewayVariables({ gateway }: Order): { fixedEnv?: Record<string, string> } {
  if (gateway === null) return {};
  return { fixedEnv: { ANTHROPIC_BASE_URL: gateway.url, ANTHROPIC_API_KEY: gateway.key } };
}

function resolveToolFile({ inputDir }: Order): string {
  return join(inputDir, "mcp.json");
}

function hasTools({ tools, servers }: Order): boolean {
  return tools !== null || servers.length > 0;
}

// With `permissions: ask`, a person allows the calls of the worker's servers.
function buildToolArgs(order: Order): string[] {
  const { tools, servers, permissions } = order;
  const allowed = [
    ...(tools === null ? [] : ["svc"]),
    ...(permissions === "ask" ? [] : servers.map(({ name }) => name)),
  ];
  return [
    ...(hasTools(order) ? [`--mcp-config=${resolveToolFile(order)}`] : []),
    ...allowed.map((name) => `--allowedTools=mcp__${name}`),
  ];
}

function buildToolFiles(order: Order, buildOwn: (order: Order) => object): EngineFile[] {
  if (!hasTools(order)) return [];
  const mcpServers = Object.fromEntries([
    ...(order.tools === null ? [] : [["svc", buildOwn(order)]]),
    ...order.servers.map((server) => [server.name, buildServer(server)]),
  ]);
  return [{ path: resolveToolFile(order), content: () => JSON.stringify({ mcpServers }) }];
}

// Claude Code replaces `${NAME}` by the value of the variable.
function buildServer(server: WorkerServer): object {
  if ("program" in server) return { type: "stdio", command: server.program, args: [] };
  const headers = Object.entries(server.headers).map(([name, from]) => [name, `\${${from}}`]);
  return { type: "http", url: server.url, headers: Object.fromEntries(headers) };
}

function buildToolServer({ tools }: Order): object {
  return { type: "http", url: tools?.url, headers: { Authorization: `Bearer ${tools?.token}` } };
}

// A process that stays has the environment of its first run. The bridge reads the token of the current run from a file.
function buildBridgeServer({ ctl, env }: Order): object {
  const own = Object.fromEntries(BRIDGE_VARIABLES.map((name) => [name, env[name] ?? ""]));
  return { type: "stdio", command: ctl, args: ["mcp"], env: own };
}

// Hooks in the work directory are programs. An agent that may only edit files could write one for its next run.
const NO_HOOKS = { disableAllHooks: true };

// Skills of the worker may run commands when the agent opens them.
const NO_SKILL_COMMANDS = { disableSkillShellExecution: true };

// Rules, hooks, skills, agents and tool servers of the work directory and the state could let a call through without a question.
const NO_SETTINGS = ["--setting-sources=", "--strict-mcp-config"];

// Claude Code refuses every command that contains a variable, even when the rules allow it.
function buildPermissionArgs({ permissions, ctl, workDir, skills }: Order): string[] {
  if (permissions === "full") return ["--dangerously-skip-permissions"];
  return [
    "--permission-mode",
    permissions === "read" ? "dontAsk" : "acceptEdits",
    "--allowedTools=Bash(svc ctl:*)",
    `--allowedTools=Bash(${ctl} ctl:*)`,
    ...["--settings", JSON.stringify({ ...NO_HOOKS, ...(skills === null ? {} : NO_SKILL_COMMANDS) })],
    ...(permissions === "ask" ? [...NO_SETTINGS, `--add-dir=${workDir}`] : []),
  ];
}

function parseSystem(line: Line): AgentEvent[] {
  const subtype = getText(line, "subtype");
  if (subtype === "init") return [{ kind: "session", id: getText(line, "session_id") }];
  if (subtype === "permission_denied") {
    return [{ kind: "notice", text: `${getText(line, "tool_name")} was not permitted` }];
  }
  if (subtype === "api_retry") {
    const { attempt, max_retries, error_status, error } = line;
    return [{
      kind: "notice",
      text: `the model answered ${error_status ?? error}, try ${attempt} of ${max_retries}`,
    }];
  }
  if (subtype === "compact_boundary") return [{ kind: "notice", text: "the conversation was summarized" }];
  return [];
}

// An error of the model's API arrives as a message of the assistant.
function parseAssistant(line: Line): AgentEvent[] {
  if (line.is_api_error_message !== true) {
    return [...parseStepUsage(getObject(line, "message")), ...parseAssistantMessage(line)];
  }
  const words = formatContent(getObject(line, "message").content);
  return [{ kind: "failure", failure: classifyStatus(getNumber(line, "api_error_status"), words) }];
}

const INPUT_FIELDS = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

// Each part of a message is one line with the usage of the message so far. The result has the exact figures.
function parseStepUsage(message: Line): AgentEvent[] {
  if (message.usage === undefined) return [];
  return [{
    kind: "usage",
    span: "step",
    key: getText(message, "id"),
    usage: countTokens(getObject(message, "usage")),
  }];
}

function countTokens(usage: Line): { input_tokens: number; output_tokens: number } {
  return {
    input_tokens: INPUT_FIELDS.reduce((sum, key) => sum + getNumber(usage, key), 0),
    output_tokens: getNumber(usage, "output_tokens"),
  };
}

function parseLimit(info: Line): AgentEvent[] {
  const seconds = getNumber(info, "resetsAt");
  const name = getText(info, "rateLimitType");
  const limit = name.replaceAll("_", " ");
  const rejected = getText(info, "status") === "rejected";
  const utilization = typeof info.utilization === "number" ? info.utilization : rejected ? 1 : null;
  const windows: AgentEvent[] = name === "" || utilization === null ? [] : [{
    kind: "windows",
    windows: [{ name, utilization, resets_at: seconds > 0 ? seconds * 1000 : null }],
  }];
  if (!rejected) return windows;
  const reset = seconds > 0 ? { at: seconds * 1000 } : null;
  return [...windows, {
    kind: "failure",
    failure: { kind: "rate_limited", words: `the ${limit} limit is reached`, reset },
  }];
}

function parseResult(line: Line): AgentEvent[] {
  const text = getText(line, "result");
  const usage = getObject(line, "usage");
  const counted: AgentEvent[] = line.usage === undefined ? [] : [
    {
      kind: "usage",
      span: "run",
      usage: countTokens(usage),
    },
    { kind: "usage", span: "session", usage: { cost_usd: getNumber(line, "total_cost_usd") } },
  ];
  if (line.is_error !== true) {
    // If the run has a schema, the answer is in a separate field.
    const structured = line.structured_output;
    const answer = structured === undefined || structured === null ? text : JSON.stringify(structured);
    return [...counted, { kind: "done", ok: true, text: answer, failure: null }];
  }
  return [...counted, { kind: "done", ok: false, text: "", failure: classifyResult(line, text) }];
}

function classifyResult(line: Line, text: string): EngineFailure | null {
  const errors = Array.isArray(line.errors) ? line.errors.map(String).join(" | ") : "";
  if (/No conversation found/.test(errors)) return buildFailure("unknown_session", errors);
  const status = getNumber(line, "api_error_status");
  if (status > 0) return classifyStatus(status, text);
  // Without a status, the earlier failure has more information.
  if (getText(line, "terminal_reason") === "api_error") return null;
  return buildFailure("model", errors || text || getText(line, "subtype").replaceAll("_", " "));
}
