import { join } from "node:path";
import { quoteShellWord } from "../../base/shell.ts";
import type { Adapter, AgentEvent, Line, Order, WorkerServer } from "../protocol/adapter.ts";
import { classifyFailure } from "../protocol/failure.ts";
import {
  formatContent,
  formatInput,
  getList,
  getNumber,
  getObject,
  getText,
} from "../protocol/json_fields.ts";

/** goose: `goose run` with a stream of JSON lines (facts, engines 9). */
export const goose: Adapter = {
  driver: "agent",
  kind: "goose",
  program: "goose",
  tested: { package: "@aaif/goose", version: "1.34.0", release: "0.20.1" },
  // The package `@aaif/goose` has another program.
  install:
    "npm install -g @aaif/goose-binary-<system>-<processor>@<version>, such as linux-x64, and name its bin/goose",
  choosesSessionId: true,
  providerHosts: ["api.anthropic.com", "api.openai.com"],
  login: {
    variables: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"],
    home: ".config/goose",
    files: ["config.yaml", "config/config.yaml"],
    advice: "set GOOSE_PROVIDER, GOOSE_MODEL and the provider's key (engines.<name>.env)",
  },
  gateways: ["openai"],
  variables: ["GOOSE_PROVIDER", "GOOSE_MODEL", "OPENAI_HOST", "ANTHROPIC_HOST"],
  reservedFlags: [
    "-i",
    "--instructions",
    "-t",
    "--text",
    "--recipe",
    "-n",
    "--name",
    "--session-id",
    "--path",
    "-r",
    "--resume",
    "-s",
    "--interactive",
    "--no-session",
    "--output-format",
    "--explain",
    "--render-recipe",
  ],
  readsFiles: (permissions) => permissions !== "read",
  findServerFault(server) {
    const hasHeaders = "url" in server && Object.keys(server.headers).length > 0;
    return hasHeaders ? "sends no headers to an MCP server" : null;
  },
  buildCommand(order) {
    const { sessionId, resume, stateDir, model, extraArgs, permissions, inputDir, tools, servers } = order;
    const shell = join(inputDir, "shell");
    return {
      args: [
        "run",
        "--quiet",
        "--output-format",
        "stream-json",
        "--no-profile",
        ...(permissions === "read" ? [] : ["--with-builtin", "developer"]),
        // goose cannot send a header. The bridge reads the token from its environment, and is on its PATH.
        ...(tools === null ? [] : ["--with-extension", "svc mcp"]),
        ...servers.flatMap(buildServerArgs),
        "--name",
        sessionId,
        ...(resume ? ["--resume"] : []),
        ...(model === "" ? [] : ["--model", model]),
        ...extraArgs,
        "--instructions",
        "-",
      ],
      env: {
        ...(stateDir === null ? {} : { GOOSE_PATH_ROOT: stateDir }),
        GOOSE_DISABLE_KEYRING: "1",
        GOOSE_MODE: "auto",
      },
      fixedEnv: { SHELL: shell, GOOSE_SHELL: shell, ...buildGatewayVariables(order) },
      files: [{ path: shell, content: () => PLAIN_SHELL, executable: true }],
    };
  },
  parseLine(line) {
    const type = getText(line, "type");
    // goose never reports its session. After its first message the requested session exists.
    if (type === "message") {
      return [{ kind: "session", id: null }, ...parseMessage(getObject(line, "message"))];
    }
    if (type === "complete") return parseComplete(line);
    if (type === "error") {
      return [{ kind: "failure", failure: classifyFailure(getText(line, "error"), "model") }];
    }
    return [];
  },
  endings: {
    unknown_session: /No session found|Session .* not found/i,
    setup: /unexpected argument|No provider configured|invalid value/i,
  },
};

function buildServerArgs(server: WorkerServer): string[] {
  return "program" in server
    ? ["--with-extension", quoteShellWord(server.program)]
    : ["--with-streamable-http-extension", server.url];
}

// goose takes the PATH of its tools from a login shell, where svc may be missing (facts, engines 2.9).
const PLAIN_SHELL = '#!/bin/sh\nwhile [ $# -gt 0 ] && [ "$1" != -c ]; do shift; done\nexec /bin/bash "$@"\n';

// goose takes the base path apart from the host.
function buildGatewayVariables({ gateway }: Order): Record<string, string> {
  if (gateway === null) return {};
  const { origin, pathname } = new URL(gateway.url);
  return {
    GOOSE_PROVIDER: "openai",
    OPENAI_HOST: origin,
    OPENAI_BASE_PATH: `${pathname.slice(1)}/v1/chat/completions`,
    OPENAI_API_KEY: gateway.key,
  };
}

function parseMessage(message: Line): AgentEvent[] {
  const words = formatContent(message.content);
  // An error of the model's API comes as a message of the model, but without an id.
  if (message.id === null && /^Ran into this error: /.test(words)) {
    return [{
      kind: "failure",
      failure: classifyFailure(words.replace(/Please retry if you think.*$/s, ""), "model"),
    }];
  }
  return getList(message, "content").flatMap((part): AgentEvent[] => {
    const type = getText(part, "type");
    if (type === "text" && getText(message, "role") === "assistant") {
      return [{ kind: "text", text: getText(part, "text"), mode: "piece" }];
    }
    if (type === "toolRequest") {
      const call = getObject(getObject(part, "toolCall"), "value");
      return [{ kind: "tool_start", name: getText(call, "name"), input: formatInput(call.arguments) }];
    }
    if (type === "toolResponse") {
      const result = getObject(part, "toolResult");
      const value = getObject(result, "value");
      const ok = getText(result, "status") === "success" && value.isError !== true;
      return [{ kind: "tool_end", output: formatContent(value.content ?? result.error ?? ""), ok }];
    }
    return [];
  });
}

// goose always exits with 0. A first run that failed has no totals (facts, engines 9).
function parseComplete(line: Line): AgentEvent[] {
  if (typeof line.total_tokens !== "number") return [{ kind: "done", ok: false, text: "", failure: null }];
  const usage = {
    input_tokens: getNumber(line, "input_tokens"),
    output_tokens: getNumber(line, "output_tokens"),
  };
  return [{ kind: "usage", span: "session", usage }, { kind: "done", ok: true, text: null, failure: null }];
}
