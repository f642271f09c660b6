import { join } from "node:path";
import { type Adapter, type AgentEvent, BRIDGE_VARIABLES, type Line, type Order } from "../adapter.ts";
import { CodexDialogue, windowName } from "../codex_dialogue.ts";
import { failureFrom, failureOfKind, lastWords } from "../failure.ts";
import { contentText, inputText, isObject, listAt, numberAt, objectAt, textAt } from "../line.ts";

/** Codex CLI: `codex exec` with a stream of JSON lines (facts, engines 4). */
export const codex: Adapter = {
  driver: "agent",
  kind: "codex",
  program: "codex",
  measured: { package: "@openai/codex", version: "0.169.0" },
  install: "npm install -g @openai/codex@0.169.0",
  plansSession: false,
  counts: { live: false, cost: false },
  login: {
    variables: ["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"],
    home: ".codex",
    files: ["auth.json"],
    advice: "set CODEX_API_KEY, or log in with: codex login, and share its state (state: shared)",
  },
  variables: ["OPENAI_API_KEY"],
  reservedFlags: ["--json", "--color", "-C", "--cd", "--ephemeral", "--worktree"],
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs } = order;
    return {
      args: [
        "exec",
        "--json",
        "--skip-git-repo-check",
        // A login shell reads /etc/profile, which may replace PATH, and then svc is not found (facts, engines 2.9).
        ...settings(["allow_login_shell=false", "analytics.enabled=false"]),
        "--disable",
        "plugins",
        ...(model === "" ? [] : ["--model", model]),
        ...permissionArgs(order),
        ...toolArgs(order),
        ...(order.schema === null ? [] : ["--output-schema", schemaFile(order)]),
        ...extraArgs,
        // `resume` comes last, because it does not accept the flags above.
        ...(resume ? ["resume", sessionId] : []),
        "-",
      ],
      env: stateDir === null ? {} : { CODEX_HOME: stateDir },
      fixedEnv: {},
      stdin: prompt,
      files: order.schema === null
        ? []
        : [{ path: schemaFile(order), content: () => JSON.stringify(order.schema) }],
      usageFile: null,
    };
  },
  // A turn is one of a thread, with events of its own (decision 0011).
  open: {
    takes: onlySettings,
    command(order) {
      return {
        args: [
          "app-server",
          ...settings(["allow_login_shell=false", "analytics.enabled=false"]),
          "--disable",
          "plugins",
          ...(order.permissions === "full"
            ? settings(['sandbox_mode="danger-full-access"'])
            : permissionArgs(order)),
          ...bridgeArgs(order),
          ...order.extraArgs,
        ],
        env: order.stateDir === null ? {} : { CODEX_HOME: order.stateDir },
        fixedEnv: {},
        stdin: "",
        files: [],
        usageFile: null,
      };
    },
    speaksFirst: true,
    isWork: (text) => /"method":\s*"(?:turn|item)\/started"/.test(text),
    begin: (order, say) => new CodexDialogue(order, say, codex.events),
  },
  events(line) {
    const type = textAt(line, "type");
    if (type === "thread.started") return [{ kind: "session", id: textAt(line, "thread_id") }];
    if (type === "item.started") return startEvents(objectAt(line, "item"));
    if (type === "item.completed") return itemEvents(objectAt(line, "item"));
    if (type === "error") return errorEvents(textAt(line, "message"));
    if (type === "turn.completed") return [...usageEvents(objectAt(line, "usage")), DONE];
    if (type === "turn.failed") {
      const words = textAt(objectAt(line, "error"), "message");
      return [{ kind: "done", ok: false, text: "", failure: failureFrom(words, "model") }];
    }
    return [];
  },
  sessionLog: {
    // The id begins with the time at which the session began; the folder is that day, in the zone of the machine.
    folders: (sessionId) => {
      const at = parseInt(sessionId.replace("-", "").slice(0, 12), 16);
      const days = Number.isNaN(at)
        ? []
        : [-1, 0, 1].map((day) => new Date(at + day * 86_400_000).toISOString());
      return days.map((day) => join("sessions", ...day.slice(0, 10).split("-")));
    },
    isName: (name, sessionId) => name.endsWith(`-${sessionId}.jsonl`),
    windows: (tail) => {
      const [, json] = [...tail.matchAll(/"rate_limits":(\{.*\})\}\}$/gm)].at(-1) ?? [];
      const limits = json === undefined ? {} : parsed(json);
      return ["primary", "secondary"].flatMap((name) => {
        const window = objectAt(limits, name);
        if (typeof window.used_percent !== "number") return [];
        const resets = numberAt(window, "resets_at");
        return [{
          name: windowName(numberAt(window, "window_minutes")) || name,
          utilization: window.used_percent / 100,
          resets_at: resets > 0 ? resets * 1000 : null,
        }];
      });
    },
  },
  failureOf({ stderr }) {
    const words = lastWords(stderr);
    if (/no rollout found/.test(stderr)) return failureOfKind("unknown_session", words);
    if (/unexpected argument|invalid value|Error loading config|required arguments/i.test(stderr)) {
      return failureOfKind("setup", words);
    }
    return failureFrom(words, "crashed");
  },
};

function parsed(json: string): Line {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

const DONE: AgentEvent = { kind: "done", ok: true, text: null, failure: null };

function settings(values: string[]): string[] {
  return values.flatMap((value) => ["-c", value]);
}

function permissionArgs({ permissions }: Order): string[] {
  if (permissions === "full") return ["--dangerously-bypass-approvals-and-sandbox"];
  if (permissions === "read") return settings(['sandbox_mode="read-only"']);
  return settings([
    'sandbox_mode="workspace-write"',
    // `svc` needs the network to reach the service.
    "sandbox_workspace_write.network_access=true",
    // Each run has a TMPDIR of its own.
    "sandbox_workspace_write.exclude_slash_tmp=true",
  ]);
}

function schemaFile({ runDir }: Order): string {
  return join(runDir, "schema.json");
}

function toolArgs({ tools }: Order): string[] {
  if (tools === null) return [];
  return settings([
    `mcp_servers.svc.url="${tools.url}"`,
    `mcp_servers.svc.bearer_token_env_var="${tools.tokenVariable}"`,
    // Nobody can be asked; the token decides what is allowed.
    'mcp_servers.svc.default_tools_approval_mode="approve"',
  ]);
}

// Its own process has the environment of its first run: the bridge reads the token of each.
function bridgeArgs({ tools, ctl, env }: Order): string[] {
  if (tools === null) return [];
  const own = BRIDGE_VARIABLES.map((name) => `${name}=${JSON.stringify(env[name] ?? "")}`).join(",");
  return settings([
    `mcp_servers.svc.command=${JSON.stringify(ctl)}`,
    'mcp_servers.svc.args=["mcp"]',
    `mcp_servers.svc.env={${own}}`,
    'mcp_servers.svc.default_tools_approval_mode="approve"',
  ]);
}

const SETTING = /^(-c|--config|--enable|--disable)$/;

// What stays open takes settings only; the other flags are those of `codex exec`.
function onlySettings(args: readonly string[]): boolean {
  return args.every((arg, i) =>
    SETTING.test(arg) || /^(-c.|--(config|enable|disable)=)/.test(arg) || SETTING.test(args[i - 1] ?? "")
  );
}

/** The tool call of an item, or null when it is something else. */
function toolOf(item: Line): { name: string; input: string } | null {
  const type = textAt(item, "type");
  if (type === "command_execution") return { name: "shell", input: shellText(textAt(item, "command")) };
  if (type === "mcp_tool_call") {
    const name = `${textAt(item, "server")}.${textAt(item, "tool")}`;
    return { name, input: inputText(item.arguments) };
  }
  if (type === "file_change") {
    const changes = listAt(item, "changes").map((change) =>
      `${textAt(change, "kind")} ${textAt(change, "path")}`
    );
    return { name: "edit", input: changes.join(", ") };
  }
  if (type === "web_search") return { name: "web search", input: textAt(item, "query") };
  return null;
}

// The command without the shell around it.
function shellText(command: string): string {
  return /^\S*\b(?:ba|z)?sh -l?c '([\s\S]*)'$/.exec(command)?.[1]?.replaceAll(`'"'"'`, "'").replaceAll(
    `'\\''`,
    "'",
  ) ??
    command;
}

function startEvents(item: Line): AgentEvent[] {
  const tool = toolOf(item);
  return tool === null ? [] : [{ kind: "tool_start", ...tool }];
}

function itemEvents(item: Line): AgentEvent[] {
  const type = textAt(item, "type");
  if (type === "agent_message") return [{ kind: "text", text: textAt(item, "text"), mode: "whole" }];
  // Despite its type this is only a notice (facts, engines 2.14).
  if (type === "error") return [{ kind: "notice", text: textAt(item, "message") }];
  if (toolOf(item) === null) return [];
  const ok = textAt(item, "status") === "completed" && (item.error ?? null) === null;
  const output = type === "mcp_tool_call"
    ? contentText(item.error ?? objectAt(item, "result").content)
    : textAt(item, "aggregated_output");
  return [{ kind: "tool_end", output, ok }];
}

function errorEvents(message: string): AgentEvent[] {
  if (!message.startsWith("Reconnecting")) {
    return [{ kind: "failure", failure: failureFrom(message, "model") }];
  }
  const failure = failureFrom(message, "model");
  return [failure.kind === "rate_limited" ? { kind: "failure", failure } : { kind: "notice", text: message }];
}

function usageEvents(usage: Line): AgentEvent[] {
  const tokens = {
    input_tokens: numberAt(usage, "input_tokens"),
    output_tokens: numberAt(usage, "output_tokens"),
  };
  return [{ kind: "usage", span: "session", usage: tokens }];
}
