import { join } from "node:path";
import { findReplacedText } from "../../domain/workers/mcp_server.ts";
import {
  type Adapter,
  type AgentEvent,
  GATEWAY_KEY,
  type Line,
  type ModelGateway,
  type Order,
  type ToolServer,
  type WorkerServer,
} from "../protocol/adapter.ts";
import { classifyFailure, classifyStatus } from "../protocol/failure.ts";
import { formatInput, getNumber, getObject, getText, mergeJson } from "../protocol/json_fields.ts";

/** opencode: `opencode run` with a stream of JSON lines (facts, engines 6). */
export const opencode: Adapter = {
  driver: "agent",
  kind: "opencode",
  program: "opencode",
  tested: { package: "opencode-ai", version: "1.18.33" },
  reportsLiveUsage: true,
  reportsCost: true,
  providerHosts: ["api.anthropic.com", "api.openai.com", "opencode.ai", "models.dev"],
  login: {
    variables: [
      "ANTHROPIC_API_KEY",
      "OPENAI_API_KEY",
      "GEMINI_API_KEY",
      "OPENROUTER_API_KEY",
      "OPENCODE_CONFIG_CONTENT",
    ],
    home: ".local/share/opencode",
    files: ["auth.json"],
    isLoginInHome: true,
    advice:
      "log in with: opencode auth login, or name a provider in OPENCODE_CONFIG_CONTENT (engines.<name>.env)",
  },
  gateways: ["anthropic", "openai"],
  variables: ["OPENCODE_CONFIG"],
  reservedFlags: [
    "--format",
    "-s",
    "--session",
    "-c",
    "--continue",
    "--fork",
    "--attach",
    "--dir",
    "-i",
    "--interactive",
    "--command",
    "--share",
  ],
  // opencode puts the value of a variable into JSON as it is.
  findServerFault: (server) => findReplacedText(server, /["\\]|\{(env|file):/, '", \\, {env: and {file:'),
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs } = order;
    return {
      args: [
        "run",
        "--format",
        "json",
        // Only these logs show that opencode waits for its provider.
        "--print-logs",
        "--log-level",
        "ERROR",
        // Without this, a permission "ask" is refused, and the run succeeds without an answer.
        ...(order.permissions === "full" ? ["--auto"] : []),
        ...(model === "" ? [] : ["--model", model]),
        // Without a title opencode asks a model for one.
        ...(resume ? ["--session", sessionId] : ["--title", "svc"]),
        ...extraArgs,
      ],
      env: {
        ...(stateDir === null ? {} : { OPENCODE_DB: join(stateDir, "opencode.db") }),
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
      fixedEnv: {
        OPENCODE_CONFIG_CONTENT: mergeJson(
          {},
          order.env.OPENCODE_CONFIG_CONTENT ?? null,
          buildSettings(order),
        ),
      },
    };
  },
  parseLine(line) {
    const type = getText(line, "type");
    const part = getObject(line, "part");
    if (type === "step_start") return [{ kind: "session", id: getText(line, "sessionID") }];
    if (type === "text") return [{ kind: "text", text: getText(part, "text"), mode: "part" }];
    if (type === "tool_use") return parseTool(part);
    if (type === "step_finish") return parseStep(part);
    if (type === "error") return parseError(line);
    return [];
  },
  parseStderr(line) {
    const words = /message="stream error".* error\.error="([^"]*)"/.exec(line)?.[1];
    if (words === undefined) return [];
    const session = /session\.id=(ses_\w+).* mode=primary/.exec(line)?.[1];
    const events: AgentEvent[] = session === undefined ? [] : [{ kind: "session", id: session }];
    return [...events, { kind: "failure", failure: classifyFailure(words, "model") }];
  },
  endings: {
    unknown_session: /Session not found/,
    setup: /Unknown argument|Model not found|ConfigInvalid|ConfigJson/i,
  },
};

function buildSettings({ permissions, ctl, tools, servers, skills, gateway }: Order): object {
  const quiet = {
    autoupdate: false,
    share: "disabled",
    ...(tools === null && servers.length === 0 ? {} : { mcp: buildServers(tools, servers) }),
    ...(gateway === null ? {} : { provider: buildProvider(gateway) }),
  };
  if (permissions === "full") {
    const allow = { edit: "allow", bash: "allow", webfetch: "allow", external_directory: "allow" };
    return { ...quiet, permission: allow };
  }
  // The last matching rule decides.
  const bash = { "*": "deny", "svc ctl *": "allow", [`${ctl} ctl *`]: "allow" };
  const edit = permissions === "edit" ? "allow" : "deny";
  const outside = skills === null ? "deny" : { "*": "deny", [`${skills.dir}/*`]: "allow" };
  return { ...quiet, permission: { edit, bash, webfetch: "deny", external_directory: outside } };
}

function buildProvider({ kind, url }: ModelGateway): object {
  return { [kind]: { options: { baseURL: `${url}/v1`, apiKey: `{env:${GATEWAY_KEY}}` } } };
}

function buildServers(tools: ToolServer | null, servers: readonly WorkerServer[]): object {
  return Object.fromEntries([
    ...(tools === null ? [] : [["svc", buildToolServer(tools)]]),
    ...servers.map((server) => [server.name, buildServer(server)]),
  ]);
}

function buildServer(server: WorkerServer): object {
  if ("program" in server) return { type: "local", command: [server.program], enabled: true };
  const headers = Object.entries(server.headers).map(([name, from]) => [name, `{env:${from}}`]);
  return {
    type: "remote",
    url: server.url,
    headers: Object.fromEntries(headers),
    enabled: true,
    oauth: false,
  };
}

function buildToolServer({ url, tokenVariable }: ToolServer): object {
  const headers = { Authorization: `Bearer {env:${tokenVariable}}` };
  return { type: "remote", url, headers, enabled: true, oauth: false };
}

function parseTool(part: Line): AgentEvent[] {
  const state = getObject(part, "state");
  const ok = getText(state, "status") === "completed";
  return [
    { kind: "tool_start", name: getText(part, "tool"), input: formatInput(state.input) },
    { kind: "tool_end", output: getText(state, ok ? "output" : "error"), ok },
  ];
}

function parseStep(part: Line): AgentEvent[] {
  const tokens = getObject(part, "tokens");
  const cache = getObject(tokens, "cache");
  const usage: AgentEvent = {
    kind: "usage",
    span: "step",
    usage: {
      input_tokens: getNumber(tokens, "input") + getNumber(cache, "read") + getNumber(cache, "write"),
      output_tokens: getNumber(tokens, "output") + getNumber(tokens, "reasoning"),
      cost_usd: getNumber(part, "cost"),
    },
  };
  const reason = getText(part, "reason");
  if (reason === "tool-calls" || reason === "unknown") return [usage];
  return [usage, { kind: "done", ok: true, text: null, failure: null }];
}

function parseError(line: Line): AgentEvent[] {
  const error = getObject(line, "error");
  const data = getObject(error, "data");
  const words = getText(data, "message") || getText(error, "message") || getText(error, "name");
  const session: AgentEvent = { kind: "session", id: getText(line, "sessionID") };
  return [session, { kind: "failure", failure: classifyStatus(getNumber(data, "statusCode"), words) }];
}
