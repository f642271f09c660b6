import { join } from "node:path";
import type { Adapter, AgentEvent, Line } from "../protocol/adapter.ts";
import { failureFrom, failureOfKind, lastWords } from "../protocol/failure.ts";
import { contentText, inputText, listAt, numberAt, objectAt, textAt } from "../protocol/json_fields.ts";

/** goose: `goose run` with a stream of JSON lines (facts, engines 9). */
export const goose: Adapter = {
  driver: "agent",
  kind: "goose",
  program: "goose",
  measured: { package: "@aaif/goose", version: "1.34.0", release: "0.20.1" },
  // The package `@aaif/goose` has another program.
  install:
    "npm install -g @aaif/goose-binary-<system>-<processor>@<version>, such as linux-x64, and name its bin/goose",
  plansSession: true,
  counts: { live: false, cost: false },
  login: {
    variables: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"],
    home: ".config/goose",
    files: ["config.yaml", "config/config.yaml"],
    advice: "set GOOSE_PROVIDER, GOOSE_MODEL and the provider's key (engines.<name>.env)",
  },
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
  command(order) {
    const { sessionId, resume, prompt, stateDir, model, extraArgs, permissions, runDir, tools } = order;
    const shell = join(runDir, "shell");
    return {
      args: [
        "run",
        "--quiet",
        "--output-format",
        "stream-json",
        "--no-profile",
        ...(permissions === "read" ? [] : ["--with-builtin", "developer"]),
        // It can send no header. The bridge has the token from its environment, and is found on its PATH.
        ...(tools === null ? [] : ["--with-extension", "svc mcp"]),
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
      fixedEnv: { SHELL: shell, GOOSE_SHELL: shell },
      stdin: prompt,
      files: [{ path: shell, content: () => PLAIN_SHELL, executable: true }],
      usageFile: null,
    };
  },
  events(line) {
    const type = textAt(line, "type");
    // It never reports its session; with its first message the requested one exists.
    if (type === "message") {
      return [{ kind: "session", id: null }, ...messageEvents(objectAt(line, "message"))];
    }
    if (type === "complete") return completeEvents(line);
    if (type === "error") return [{ kind: "failure", failure: failureFrom(textAt(line, "error"), "model") }];
    return [];
  },
  failureOf({ stderr }) {
    const words = lastWords(stderr);
    if (/No session found|Session .* not found/i.test(stderr)) return failureOfKind("unknown_session", words);
    if (/unexpected argument|No provider configured|invalid value/i.test(stderr)) {
      return failureOfKind("setup", words);
    }
    return failureFrom(words, "crashed");
  },
};

// It takes the PATH for its tools from a login shell, where svc may be missing (facts, engines 2.9).
const PLAIN_SHELL = '#!/bin/sh\nwhile [ $# -gt 0 ] && [ "$1" != -c ]; do shift; done\nexec /bin/bash "$@"\n';

function messageEvents(message: Line): AgentEvent[] {
  const words = contentText(message.content);
  // An error of the model's API comes as a message of the model, but without an id.
  if (message.id === null && /^Ran into this error: /.test(words)) {
    return [{
      kind: "failure",
      failure: failureFrom(words.replace(/\s*Please retry if you think.*$/s, ""), "model"),
    }];
  }
  return listAt(message, "content").flatMap((part): AgentEvent[] => {
    const type = textAt(part, "type");
    if (type === "text" && textAt(message, "role") === "assistant") {
      return [{ kind: "text", text: textAt(part, "text"), mode: "piece" }];
    }
    if (type === "toolRequest") {
      const call = objectAt(objectAt(part, "toolCall"), "value");
      return [{ kind: "tool_start", name: textAt(call, "name"), input: inputText(call.arguments) }];
    }
    if (type === "toolResponse") {
      const result = objectAt(part, "toolResult");
      const value = objectAt(result, "value");
      const ok = textAt(result, "status") === "success" && value.isError !== true;
      return [{ kind: "tool_end", output: contentText(value.content ?? result.error ?? ""), ok }];
    }
    return [];
  });
}

// It always exits with 0. A first run that failed has no totals (facts, engines 9).
function completeEvents(line: Line): AgentEvent[] {
  if (typeof line.total_tokens !== "number") return [{ kind: "done", ok: false, text: "", failure: null }];
  const usage = {
    input_tokens: numberAt(line, "input_tokens"),
    output_tokens: numberAt(line, "output_tokens"),
  };
  return [{ kind: "usage", span: "session", usage }, { kind: "done", ok: true, text: null, failure: null }];
}
