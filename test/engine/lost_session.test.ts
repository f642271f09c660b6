import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { classifyEnd } from "../../src/engine/protocol/failure.ts";
import { openApp } from "../harness/service/app.ts";

const FORGETFUL = new URL("../harness/fakes/forgetful.sh", import.meta.url).pathname;
const ID = "8092a207-ff21-4972-a350-ef4222416ef3";

/** Sends two messages to a worker whose engine has lost the session of the first one. */
async function talkTwice(kind: string, words: string, more: { lines?: string; code?: string } = {}) {
  await using app = await openApp({
    config: {
      engines: {
        default: kind,
        [kind]: {
          command: FORGETFUL,
          permissions: "full",
          // A process that stays open has a dialogue.
          warm: { max: 0 },
          env: {
            FAKE_KIND: kind,
            FAKE_WORDS: words,
            FAKE_LINES: more.lines ?? "",
            FAKE_CODE: more.code ?? "1",
          },
        },
      },
    },
  });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  for (const content of ["the first message", "the second message"]) {
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
    await app.settle();
  }
  const [execution] = await app.call("GET /api/executions");
  const prompt = await Deno.readTextFile(join(worker.work_dir, "prompt.txt"));
  return { execution, prompt };
}

describe("an engine that reports an unknown session on stderr only", () => {
  it.each<[string, string, { lines?: string; code?: string }]>([
    ["claude", `No conversation found with session ID: ${ID}`, {}],
    ["claude", `Error: session ${ID} does not exist`, { code: "0" }],
    ["claude", `No conversation found with session ID: ${ID}`, {
      lines: '{"type":"result","subtype":"error_during_execution","is_error":true,"result":""}',
    }],
    ["codex", `Error: thread/resume: no rollout found for thread id ${ID} (code -32600)`, {}],
    ["codex", `Error: thread not found: ${ID}`, { code: "0" }],
    ["gemini", `Error resuming session: Invalid session identifier "${ID}".`, { code: "42" }],
    ["gemini", `Error resuming session: Invalid session identifier "${ID}".`, {
      code: "0",
      lines: '{"type":"result","status":"error","error":{"message":"failed"},"stats":{}}',
    }],
    ["opencode", "\\033[91m\\033[1mError: \\033[0mSession not found", {}],
    ["qwen", `No saved session found with ID ${ID}`, {
      lines: '{"type":"result","subtype":"error_during_execution","is_error":true}',
    }],
    ["copilot", `Could not find session ${ID}`, { code: "0", lines: '{"type":"result","exitCode":0}' }],
    ["goose", `Error: Session '${ID}' not found`, {
      code: "0",
      lines: '{"type":"complete","total_tokens":null}',
    }],
    // A stack trace follows.
    ["goose", `No session found with name ${ID}\\n${"    at load (file.rs)\\n".repeat(400)}`, {}],
  ])("starts a new one with the conversation so far: %s (%#)", async (kind, words, more) => {
    const { execution, prompt } = await talkTwice(kind, words, more);
    expect(execution).toMatchObject({ status: "completed", result: "hello" });
    expect(prompt).toContain("the first message");
  });

  it.each([
    ["claude", "Login session not found. Run /login."],
    ["codex", "ERROR mcp client: session not found"],
    ["gemini", "the disk is full"],
  ])("keeps the session for another failure: %s %s", async (kind, words) => {
    const { execution, prompt } = await talkTwice(kind, words);
    expect(execution.status).toBe("failed");
    expect(prompt).not.toContain("the first message");
  });

  it.each([
    ["claude", '{"type":"assistant","message":{"content":[{"type":"text","text":"I sent the mail."}]}}'],
    ["codex", '{"type":"item.completed","item":{"type":"agent_message","text":"I sent the mail."}}'],
    ["gemini", '{"type":"message","role":"assistant","content":"I sent the mail.","delta":true}'],
    ["opencode", '{"type":"text","part":{"text":"I sent the mail."}}'],
  ])("does not run a turn again that has acted: %s", async (kind, lines) => {
    const { execution, prompt } = await talkTwice(kind, "Error: chat 7 not found", { lines });
    expect(execution).toMatchObject({ status: "failed", result: "I sent the mail." });
    expect(prompt).not.toContain("the first message");
  });

  it("is a lost session only for a process that resumed one", () => {
    expect(classifyEnd({}, "Error: session not found", true).kind).toBe("unknown_session");
    expect(classifyEnd({}, "Error: session not found", false).kind).toBe("crashed");
  });
});
