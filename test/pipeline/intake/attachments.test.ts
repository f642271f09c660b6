import { expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";
import { FakeTelegram } from "../../platform/fakes/telegram.ts";

const file = (file_id: string) => ({
  more: {
    text: undefined,
    caption: "say got it",
    document: { file_id, file_name: "a.txt", mime_type: "text/plain", file_size: 1 },
  },
});

async function open(loud: FakeTelegram, quiet: FakeTelegram) {
  const phone = (fake: FakeTelegram) => ({
    ...{ kind: "telegram", token: fake.token, base_url: fake.url, worker: "Ada", allow: ["7"] },
  });
  const platforms = { loud: phone(loud), quiet: phone(quiet) } as never;
  const app = await openApp({ config: { engines: buildFakeEngines(), platforms } });
  await app.call("POST /api/workers", { name: "Ada" });
  return app;
}

it("Attachments: hanging files of one platform leave capacity for another (contract 10.1)", async () => {
  await using loud = new FakeTelegram();
  await using quiet = new FakeTelegram();
  await using app = await open(loud, quiet);
  const there = app.server.parts.platforms.get("loud")?.platform;
  if (there === undefined || there === null) throw new Error("it is not there");
  let hanging = 0;
  there.fetch = (_ref, signal) => {
    hanging++;
    return new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("ended")), { once: true });
    });
  };
  for (let i = 0; i < 10; i++) loud.say("", file(`f${i}`));
  await waitUntil("as many as it may hang", () => hanging === 4);
  quiet.files.set("f", new TextEncoder().encode("a"));
  quiet.say("", file("f"));
  await waitUntil("the other is served", () => quiet.sent.some(({ text }) => text === "got it"));
  expect(hanging).toBe(4);
});

it("Attachments: retry a file that could not be stored after a pause", async () => {
  await using loud = new FakeTelegram();
  await using quiet = new FakeTelegram();
  await using app = await open(loud, quiet);
  const write = app.db.write.bind(app.db);
  let tries = 0;
  let full = true;
  app.db.write = (statements) => {
    const isOurs = statements.some(({ sql }) => sql.includes("trim(content || char(10)"));
    if (!isOurs) return write(statements);
    tries++;
    return full ? Promise.reject(new Error("the disk is full")) : write(statements);
  };
  loud.say("", file("gone"));
  await waitUntil("it was tried", () => tries === 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(tries).toBe(1);
  full = false;
  await waitUntil("it is told", () => loud.sent.some(({ text }) => text === "got it"));
});
