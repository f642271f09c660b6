import { join } from "node:path";
import type { Adapter, AgentEvent, Line, Order, ToolServer } from "../protocol/adapter.ts";
import { failureFrom, failureFromStatus, failureOfKind, lastWords } from "../protocol/failure.ts";
import { mergedJson } from "../protocol/json_file.ts";
import { inputText, numberAt, objectAt, textAt } from "../protocol/json_fields.ts";

/** opencode: `opencode run` with a stream of JSON lines (facts, engines 6). */
export const opencode: Adapter = {
  driver: "agent",
  kind: "opencode",
  program: "opencode",
  measured: { package: "opencode-ai", version: "1.18.33" },
  plansSession: false,
  counts: { live: true, cost: true },
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
    sharedLogin: true,
    advice:
      "log in with: opencode auth login, or name a provider in OPENCODE_CONFIG_CONTENT (engines.<name>.env)",
  },
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
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs } = order;
    return {
      args: [
        "run",
        "--format",
        "json",
        // Only these logs show that it waits for its provider.
        "--print-logs",
        "--log-level",
        "ERROR",
        // Without this, a permission "ask" means no, and the run succeeds without an answer.
        ...(order.permissions === "full" ? ["--auto"] : []),
        ...(model === "" ? [] : ["--model", model]),
        // With a title it does not ask a model for one.
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
        OPENCODE_CONFIG_CONTENT: mergedJson({}, order.env.OPENCODE_CONFIG_CONTENT ?? null, settings(order)),
      },
      stdin: prompt,
      files: [],
      usageFile: null,
    };
  },
  events(line) {
    const type = textAt(line, "type");
    const part = objectAt(line, "part");
    if (type === "step_start") return [{ kind: "session", id: textAt(line, "sessionID") }];
    if (type === "text") return [{ kind: "text", text: textAt(part, "text"), mode: "part" }];
    if (type === "tool_use") return toolEvents(part);
    if (type === "step_finish") return stepEvents(part);
    if (type === "error") return errorEvents(line);
    return [];
  },
  stderrEvents(line) {
    const words = /message="stream error".* error\.error="([^"]*)"/.exec(line)?.[1];
    if (words === undefined) return [];
    const session = /session\.id=(ses_\w+).* mode=primary/.exec(line)?.[1];
    const told: AgentEvent[] = session === undefined ? [] : [{ kind: "session", id: session }];
    return [...told, { kind: "failure", failure: failureFrom(words, "model") }];
  },
  failureOf({ stderr }) {
    const words = lastWords(stderr);
    if (/Session not found/.test(stderr)) return failureOfKind("unknown_session", words);
    if (/Unknown argument|Model not found|ConfigInvalid|ConfigJson/i.test(stderr)) {
      return failureOfKind("setup", words);
    }
    return failureFrom(words, "crashed");
  },
};

function settings({ permissions, ctl, tools }: Order): object {
  const quiet = {
    autoupdate: false,
    share: "disabled",
    ...(tools === null ? {} : { mcp: { svc: toolServer(tools) } }),
  };
  if (permissions === "full") {
    const allow = { edit: "allow", bash: "allow", webfetch: "allow", external_directory: "allow" };
    return { ...quiet, permission: allow };
  }
  // The last matching rule decides.
  const bash = { "*": "deny", "svc ctl *": "allow", [`${ctl} ctl *`]: "allow" };
  const edit = permissions === "edit" ? "allow" : "deny";
  return { ...quiet, permission: { edit, bash, webfetch: "deny", external_directory: "deny" } };
}

function toolServer({ url, tokenVariable }: ToolServer): object {
  const headers = { Authorization: `Bearer {env:${tokenVariable}}` };
  return { type: "remote", url, headers, enabled: true, oauth: false };
}

function toolEvents(part: Line): AgentEvent[] {
  const state = objectAt(part, "state");
  const ok = textAt(state, "status") === "completed";
  return [
    { kind: "tool_start", name: textAt(part, "tool"), input: inputText(state.input) },
    { kind: "tool_end", output: textAt(state, ok ? "output" : "error"), ok },
  ];
}

function stepEvents(part: Line): AgentEvent[] {
  const tokens = objectAt(part, "tokens");
  const cache = objectAt(tokens, "cache");
  const usage: AgentEvent = {
    kind: "usage",
    span: "step",
    usage: {
      input_tokens: numberAt(tokens, "input") + numberAt(cache, "read") + numberAt(cache, "write"),
      output_tokens: numberAt(tokens, "output") + numberAt(tokens, "reasoning"),
      cost_usd: numberAt(part, "cost"),
    },
  };
  const reason = textAt(part, "reason");
  if (reason === "tool-calls" || reason === "unknown") return [usage];
  return [usage, { kind: "done", ok: true, text: null, failure: null }];
}

function errorEvents(line: Line): AgentEvent[] {
  const error = objectAt(line, "error");
  const data = objectAt(error, "data");
  const words = textAt(data, "message") || textAt(error, "message") || textAt(error, "name");
  const session: AgentEvent = { kind: "session", id: textAt(line, "sessionID") };
  return [session, { kind: "failure", failure: failureFromStatus(numberAt(data, "statusCode"), words) }];
}
