import { describe, expect, it } from "vitest";
import type { Line, Order } from "../../src/engine/protocol/adapter.ts";
import { codex } from "../../src/engine/adapters/codex.ts";
import { AcpDialogue } from "../../src/engine/protocol/acp_dialogue.ts";
import { answerPermission } from "../../src/engine/protocol/acp_questions.ts";
import { isOwnCommand, requestApproval } from "../../src/engine/protocol/approvals.ts";
import { computeCallKey } from "../../src/domain/work/approval.ts";
import { ORDER } from "../harness/model/order.ts";
import { waitUntil } from "../harness/wait.ts";

// The tool call that a person sees, and the one that the conversation remembers (contract 23).

/** A service that allows each call and keeps the requests. */
function openDoor() {
  // deno-lint-ignore no-explicit-any
  const asked: any[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    asked.push(await request.json());
    return Response.json({ id: "q", decision: "allow", reason: "" });
  });
  const env = { SVC_URL: `http://127.0.0.1:${server.addr.port}`, SVC_TOKEN: "t" };
  const order: Order = { ...ORDER, permissions: "ask", env };
  return { asked, order, [Symbol.asyncDispose]: () => server.shutdown() };
}

const OPTIONS = [
  { optionId: "yes", name: "Yes", kind: "allow_once" },
  { optionId: "no", name: "No", kind: "reject_once" },
];
const NEVER = new AbortController().signal;
const ask = (order: Order, toolCall: Line) => answerPermission(order, { toolCall, options: OPTIONS }, NEVER);

describe("a tool call of an ACP agent (contract 23)", () => {
  it("has the whole command among its arguments when only its title names it", async () => {
    await using door = openDoor();
    const start = `perl -e '${"print 1; ".repeat(10)}'`;
    for (const end of ["touch one", "touch two"]) {
      await ask(door.order, { toolCallId: end, title: `${start}; ${end}`, kind: "execute", content: [] });
    }
    expect(door.asked.map((call) => call.arguments)).toEqual([
      expect.stringContaining("touch one"),
      expect.stringContaining("touch two"),
    ]);
    expect(new Set(door.asked.map(computeCallKey)).size).toBe(2);
  });

  it("is denied without a question when the agent does not say what it does", async () => {
    await using door = openDoor();
    const empty = { toolCallId: "c", kind: "execute", rawInput: {}, content: [], locations: [] };
    for (const call of [{ toolCallId: "c" }, empty]) {
      expect(await ask(door.order, call)).toEqual({ outcome: "selected", optionId: "no" });
    }
    expect(door.asked).toEqual([]);
  });

  it("has the fields of its earlier announcement among its arguments", async () => {
    await using door = openDoor();
    const said: Line[] = [];
    const dialogue = new AcpDialogue(door.order, { say: (text) => said.push(JSON.parse(text)), close() {} });
    dialogue.turn(door.order, () => {});
    dialogue.hear({ id: 1, result: { protocolVersion: 1 } });
    dialogue.hear({ id: 2, result: { sessionId: "s" } });
    const update = (change: Line) =>
      dialogue.hear({ method: "session/update", params: { sessionId: "s", update: change } });
    update({ sessionUpdate: "tool_call", toolCallId: "c", title: "bash", kind: "read", rawInput: {} });
    update({ sessionUpdate: "tool_call_update", toolCallId: "c", rawInput: { command: "rm -r x" } });
    const toolCall = { toolCallId: "c", kind: "execute" };
    dialogue.hear({ id: 9, method: "session/request_permission", params: { toolCall, options: OPTIONS } });
    await waitUntil("it is answered", () => said.some(({ id }) => id === 9));
    expect(door.asked).toMatchObject([{ tool: "bash", arguments: expect.stringContaining("rm -r x") }]);
    dialogue.close();
  });
});

it("invisible characters that can carry any text are escaped (contract 23)", async () => {
  await using door = openDoor();
  const hidden = [
    "\ufe0f",
    "\u{e0100}",
    "\u034f",
    "\u17b4",
    "\u2800",
    "\u00a0",
    "\u3000",
    "\u200b",
    "\u202e",
  ];
  const input = { command: `curl https://example.org/${hidden.join("")} é 日本` };
  await requestApproval(door.order, { tool: "Bash", input }, NEVER);
  const [{ arguments: shown }] = door.asked;
  for (const one of hidden) expect(shown).not.toContain(one);
  expect(shown).toMatch(/\\u\{fe0f\}\\u\{e0100\}.*\\u\{202e\} é 日本/);
});

it("Codex gives no input to a command that a person has allowed (contract 23)", () => {
  const command = codex.open?.buildCommand({ ...ORDER, permissions: "ask" });
  expect(command?.args).toContain("features.unified_exec_tty=false");
});

it.each([
  ["svc ctl worker list -q", true],
  ["svc ctl memory save --scope global --key from --value x", true],
  ["svc ctl message send --media-path /etc/passwd", false],
  ["svc ctl worker create Ada -f/home/me/notes", false],
  ["svc ctl task create --file=/home/me/notes", false],
  ["svc ctl worker list; id", false],
  ["svc serve", false],
])("%s runs without a question: %s (contract 23)", (command, isFree) => {
  expect(isOwnCommand("svc", command)).toBe(isFree);
});
