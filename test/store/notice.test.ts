import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";
import { listEvents } from "../../src/store/events/journal.ts";
import { insertNotice } from "../../src/store/chat/notice.ts";

const NOTICE = {
  kind: "budget.soft",
  message_id: "",
  about: "some-budget",
  content: "80 % is used",
} as const;

describe("insertNotice (contract 11)", () => {
  it("stores a system message in the conversation, and its chat shows the message", async () => {
    await using app = await openApp({ inMemory: true });
    const session = await app.call("POST /api/local/sessions", { name: "Plans" });
    const session_key = `local:${session.id}`;
    await app.db.write(insertNotice({ ...NOTICE, session_key }, 5));
    const [message] = await app.call(`GET /api/messages/outbound?session_key=${session_key}`);
    expect(message).toMatchObject({
      content: "80 % is used",
      source_type: "system",
      source_id: "some-budget",
      status: "sent",
    });
    expect(await app.call(`GET /api/local/sessions/${session.id}/messages`)).toMatchObject([
      { role: "bee", content: "80 % is used" },
    ]);
    const [event] = await listEvents(app.db, 0, 10, { kinds: ["message.sent"] });
    expect(event?.data).toBe(JSON.stringify({ outbound_id: message.id, notice: "budget.soft" }));
  });

  it("stores nothing without a conversation, or when its condition is false", async () => {
    await using app = await openApp({ inMemory: true });
    const session = await app.call("POST /api/local/sessions", { name: "Plans" });
    const session_key = `local:${session.id}`;
    const when = { sql: "? = 2", args: [1] };
    expect(insertNotice({ ...NOTICE, session_key: "" }, 5)).toEqual([]);
    expect(insertNotice({ ...NOTICE, session_key: "cli:nightly" }, 5)).toEqual([]);
    await app.db.write(insertNotice({ ...NOTICE, session_key }, 5, when));
    await app.db.write(insertNotice({ ...NOTICE, session_key: "local:of-a-deleted-session" }, 5));
    expect(await app.call("GET /api/messages/outbound")).toEqual([]);
    expect(await listEvents(app.db, 0, 10, { kinds: ["message.sent"] })).toEqual([]);
  });
});
