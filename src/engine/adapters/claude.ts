import { join } from "node:path";
import {
  type Adapter,
  type AgentEvent,
  BRIDGE_VARIABLES,
  type EngineFailure,
  type Line,
  type Order,
} from "../adapter.ts";
import { failureFrom, failureFromStatus, failureOfKind, lastWords } from "../failure.ts";
import { contentText, numberAt, objectAt, textAt } from "../line.ts";
import { assistantEvents, toolResults } from "../messages.ts";

/** Claude Code: `claude -p` with a stream of JSON lines (facts, engines 3). */
export const claude: Adapter = {
  driver: "agent",
  kind: "claude",
  program: "claude",
  measured: { package: "@anthropic-ai/claude-code", version: "2.1.329" },
  install: "npm install -g @anthropic-ai/claude-code@2.1.329",
  plansSession: true,
  counts: { live: true, cost: true },
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
    "-w",
    "--worktree",
  ],
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs, root, permissions } = order;
    return {
      args: [
        "--print",
        "--output-format=stream-json",
        "--verbose",
        resume ? "--resume" : "--session-id",
        sessionId,
        ...(model === "" ? [] : ["--model", model]),
        ...permissionArgs(order),
        ...(order.tools === null ? [] : [`--mcp-config=${toolFile(order)}`, "--allowedTools=mcp__svc"]),
        ...(order.schema === null ? [] : [`--json-schema=${JSON.stringify(order.schema)}`]),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { CLAUDE_CONFIG_DIR: stateDir }),
        // Updates and telemetry cost a run seconds, most of all behind a firewall.
        DISABLE_AUTOUPDATER: "1",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        // Its default of ten tries takes minutes; our own retries do not occupy a slot (facts, engines 2.13).
        CLAUDE_CODE_MAX_RETRIES: "4",
        // As root it refuses to skip permissions unless it is told that it runs in a sandbox.
        ...(root && permissions === "full" ? { IS_SANDBOX: "1" } : {}),
        // Without this the agent has to search for the service's tools first.
        ...(order.tools === null ? {} : { ENABLE_TOOL_SEARCH: "false" }),
      },
      fixedEnv: {},
      stdin: prompt,
      files: order.tools === null ? [] : [{ path: toolFile(order), content: () => toolConfig(order.tools) }],
      usageFile: null,
    };
  },
  // Each message of a line is a turn with a result of its own (decision 0011).
  open: {
    command(order) {
      const command = claude.command(order);
      return {
        ...command,
        args: ["--input-format=stream-json", ...command.args],
        // What went on behind a turn would end in a turn that nobody asked for.
        env: { ...command.env, CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1" },
        stdin: "",
        files: order.tools === null ? [] : [{ path: toolFile(order), content: () => bridgeConfig(order) }],
      };
    },
    speaksFirst: true,
    isWork: (text) => /"type":"assistant"|"subtype":"init"/.test(text),
    begin(_order, say) {
      const line = (message: object) => say(`${JSON.stringify(message)}\n`);
      return {
        turn({ prompt }) {
          const message = { role: "user", content: [{ type: "text", text: prompt }] };
          line({ type: "user", message, parent_tool_use_id: null, session_id: "" });
        },
        // A turn that it makes of its own is not the answer to ours.
        hear: (heard) =>
          textAt(objectAt(heard, "origin"), "kind") === "task-notification" ? [] : claude.events(heard),
        interrupt: () =>
          line({ type: "control_request", request_id: "end", request: { subtype: "interrupt" } }),
        close() {},
      };
    },
  },
  events(line) {
    const type = textAt(line, "type");
    if (type === "system") return systemEvents(line);
    if (type === "assistant") return wordsOf(line);
    if (type === "user") return toolResults(line);
    if (type === "rate_limit_event") return limitEvents(objectAt(line, "rate_limit_info"));
    if (type === "result") return resultEvents(line);
    return [];
  },
  failureOf({ stderr }) {
    const words = lastWords(stderr);
    if (/Session ID .* is already in use/.test(stderr)) return failureOfKind("session_exists", words);
    if (/unknown option|cannot be used with root/.test(stderr)) return failureOfKind("setup", words);
    return failureFrom(words, "crashed");
  },
};

function toolFile({ runDir }: Order): string {
  return join(runDir, "mcp.json");
}

function toolConfig(tools: Order["tools"]): string {
  const headers = { Authorization: `Bearer ${tools?.token}` };
  return JSON.stringify({ mcpServers: { svc: { type: "http", url: tools?.url, headers } } });
}

// Its own process has the environment of its first run, and so no token of a later one: the bridge reads that from a file.
function bridgeConfig({ ctl, env }: Order): string {
  const own = Object.fromEntries(BRIDGE_VARIABLES.map((name) => [name, env[name] ?? ""]));
  return JSON.stringify({ mcpServers: { svc: { type: "stdio", command: ctl, args: ["mcp"], env: own } } });
}

// Hooks in the work directory are programs. An agent that may only edit files could write one for its next run.
const NO_HOOKS = ["--settings", '{"disableAllHooks":true}'];

// It refuses every command with a variable in it, whatever the rules allow.
function permissionArgs({ permissions, ctl }: Order): string[] {
  if (permissions === "full") return ["--dangerously-skip-permissions"];
  return [
    "--permission-mode",
    permissions === "edit" ? "acceptEdits" : "dontAsk",
    "--allowedTools=Bash(svc ctl:*)",
    `--allowedTools=Bash(${ctl} ctl:*)`,
    ...NO_HOOKS,
  ];
}

function systemEvents(line: Line): AgentEvent[] {
  const subtype = textAt(line, "subtype");
  if (subtype === "init") return [{ kind: "session", id: textAt(line, "session_id") }];
  if (subtype === "permission_denied") {
    return [{ kind: "notice", text: `${textAt(line, "tool_name")} was not permitted` }];
  }
  if (subtype === "api_retry") {
    const { attempt, max_retries, error_status, error } = line;
    return [{
      kind: "notice",
      text: `the model answered ${error_status ?? error}, try ${attempt} of ${max_retries}`,
    }];
  }
  if (subtype === "compact_boundary") return [{ kind: "notice", text: "the conversation was summed up" }];
  return [];
}

// An error of the model's API comes as a message of the assistant.
function wordsOf(line: Line): AgentEvent[] {
  if (line.is_api_error_message !== true) {
    return [...stepUsage(objectAt(line, "message")), ...assistantEvents(line)];
  }
  const words = contentText(objectAt(line, "message").content);
  return [{ kind: "failure", failure: failureFromStatus(numberAt(line, "api_error_status"), words) }];
}

const INPUT_FIELDS = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

// Each part of a message comes in a line of its own, and each has the message's use so far. The result has the exact figures.
function stepUsage(message: Line): AgentEvent[] {
  if (message.usage === undefined) return [];
  return [{
    kind: "usage",
    span: "step",
    key: textAt(message, "id"),
    usage: tokensOf(objectAt(message, "usage")),
  }];
}

function tokensOf(usage: Line): { input_tokens: number; output_tokens: number } {
  return {
    input_tokens: INPUT_FIELDS.reduce((sum, key) => sum + numberAt(usage, key), 0),
    output_tokens: numberAt(usage, "output_tokens"),
  };
}

function limitEvents(info: Line): AgentEvent[] {
  const seconds = numberAt(info, "resetsAt");
  const name = textAt(info, "rateLimitType");
  const limit = name.replaceAll("_", " ");
  const rejected = textAt(info, "status") === "rejected";
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

function resultEvents(line: Line): AgentEvent[] {
  const text = textAt(line, "result");
  const usage = objectAt(line, "usage");
  const counted: AgentEvent[] = line.usage === undefined ? [] : [
    {
      kind: "usage",
      span: "run",
      usage: tokensOf(usage),
    },
    { kind: "usage", span: "session", usage: { cost_usd: numberAt(line, "total_cost_usd") } },
  ];
  if (line.is_error !== true) {
    // An answer with a schema is in a field of its own.
    const structured = line.structured_output;
    const answer = structured === undefined || structured === null ? text : JSON.stringify(structured);
    return [...counted, { kind: "done", ok: true, text: answer, failure: null }];
  }
  return [...counted, { kind: "done", ok: false, text: "", failure: resultFailure(line, text) }];
}

function resultFailure(line: Line, text: string): EngineFailure | null {
  const errors = Array.isArray(line.errors) ? line.errors.map(String).join(" | ") : "";
  if (/No conversation found/.test(errors)) return failureOfKind("unknown_session", errors);
  const status = numberAt(line, "api_error_status");
  if (status > 0) return failureFromStatus(status, text);
  // Without a status, the failure that came before says more.
  if (textAt(line, "terminal_reason") === "api_error") return null;
  return failureOfKind("model", errors || text || textAt(line, "subtype").replaceAll("_", " "));
}
