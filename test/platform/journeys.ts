import { join } from "node:path";
import { expect } from "vitest";
import { MANIFESTS } from "../../src/platform/registry.ts";
import type { App } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { listTexts, readPlatformCheck, readReply, waitForState, waitForText } from "./worlds/open.ts";
import type { Ability, MessageOptions, World } from "./worlds/world.ts";

/** A service with one platform, named `there`, and its worker Ada. */
export interface Stage {
  world: World;
  app: App;
  /** Restarts the service with the same data. */
  again: (meanwhile?: () => Promise<void>) => Promise<void>;
}

/** A conversation between a person and an agent. Runs on every platform. */
export interface Journey {
  name: string;
  needs: Ability[];
  /** The platform allows no person at first. */
  isClosed?: boolean;
  /** The key is invalid at first. */
  isRevoked?: boolean;
  /** Speed of the service's clock. */
  speed?: number;
  go: (stage: Stage) => Promise<void>;
}

const texts = ({ world }: Stage) => listTexts(world);
const said = (stage: Stage, text: string) => texts(stage).filter((one) => one === text).length;
const hears = ({ world }: Stage, text: string) => waitForText(world, text);
const inbound = ({ app }: Stage) => app.call("GET /api/messages/inbound");

async function send({ app }: Stage, messageId: string, content: string, file?: File): Promise<void> {
  const form = new FormData();
  form.set("message_id", messageId);
  if (content !== "") form.set("content", content);
  if (file !== undefined) form.set("file", file);
  const response = await app.server.fetch(
    new Request("http://localhost/api/messages", {
      method: "POST",
      headers: { authorization: `Bearer ${await app.token()}` },
      body: form,
    }),
  );
  expect(response.status, await response.text()).toBe(201);
}

/** Creates a conversation with one answered message. Returns the service's id of the message. */
async function begin(stage: Stage, told: MessageOptions = {}): Promise<string> {
  await stage.world.say("say begun", told);
  await hears(stage, "begun");
  await stage.app.settle();
  return (await inbound(stage))[0].id;
}

const ask = (stage: Stage, messageId: string, text: string, options: string[] = []) =>
  stage.app.call("POST /api/questions", { message_id: messageId, text, options });

async function asked(stage: Stage, text: string) {
  await waitUntil(text, () => texts(stage).some((one) => one.startsWith(text)));
  const message = stage.world.sent().find((one) => one.text.startsWith(text));
  if (message === undefined) throw new Error(text);
  return message;
}

const answerIs = (stage: Stage, id: string, answer: string) =>
  waitUntil(`the answer is ${answer}`, async () => {
    return (await stage.app.call(`GET /api/questions/${id}`)).answer === answer;
  });

export const JOURNEYS: Journey[] = [
  {
    name: "a message and its reply",
    needs: [],
    go: async (stage) => {
      const id = await stage.world.say("say hello");
      await hears(stage, "hello");
      const { can, person: chat } = stage.world;
      const answers = can.has("answers") ? id : "";
      expect(stage.world.sent().at(-1)).toMatchObject({ chat, answers, text: "hello" });
    },
  },
  {
    name: "a typing sign, and progress in one message that is edited and deleted",
    needs: ["progress"],
    speed: 5,
    go: async (stage) => {
      const { world, app } = stage;
      const bob = await app.call("POST /api/workers", { name: "Bob" });
      await using folder = await createTempDir();
      const done = ["ada", "bob"].map((name) => join(folder.path, name));
      await world.say(`until ${done[0]}`);
      if (!world.can.has("no signs")) await waitUntil("a sign", () => world.signs() > 0);
      const shows = (words: string) => texts(stage).some((text) => text.startsWith(words));
      await waitUntil("progress", () => shows("Ada works on it"));
      const [{ id: message_id }] = await inbound(stage);
      const more = { message_id, worker_id: bob.id, instruction: `until ${done[1]}`, type: "immediate" };
      await app.call("POST /api/tasks", more);
      await waitUntil("the message is edited", () => shows("Ada, Bob work on it"));
      for (const file of done) await Deno.writeTextFile(file, "");
      for (const file of done) await hears(stage, `found ${file}`);
      await waitUntil("progress is gone", () => texts(stage).length === 2);
      expect(world.sent()).toHaveLength(3);
    },
  },
  {
    name: "a thread is a conversation",
    needs: ["threads"],
    go: async (stage) => {
      const place = { chat: "-5", isGroup: true, isMention: true, thread: "44" };
      await stage.world.say("say in the thread", place);
      await hears(stage, "in the thread");
      expect(stage.world.sent().at(-1)).toMatchObject({ chat: "-5", thread: "44" });
      expect(await inbound(stage)).toMatchObject([{ session_key: "there:-5:44" }]);
    },
  },
  {
    name: "a group, where only mentions of allowed people count",
    needs: ["groups"],
    isClosed: true,
    go: async (stage) => {
      const { world } = stage;
      const group = { chat: "-5", isGroup: true };
      await world.say("say no mention", group);
      await world.say("say a stranger", { ...group, isMention: true, from: "66" });
      await world.say("say a bot", { ...group, isMention: true, isBot: true });
      await world.say("say yes", { ...group, isMention: true });
      await hears(stage, "yes");
      await stage.app.settle();
      expect(await inbound(stage)).toMatchObject([{ content: "say yes" }]);
      expect(texts(stage)).toEqual(["yes"]);
    },
  },
  {
    name: "a file comes in with its message",
    needs: ["files in"],
    go: async (stage) => {
      const bytes = new TextEncoder().encode("what is in the file");
      await stage.world.say("say got it", { file: { name: "заметки 📎.txt", bytes } });
      await hears(stage, "got it");
      const messages: { content: string; media: { path: string } | null }[] = await inbound(stage);
      const message = messages.find(({ media }) => media !== null);
      expect(messages.map(({ content }) => content).join("")).toBe("say got it");
      expect(messages).toHaveLength(stage.world.can.has("files alone") ? 2 : 1);
      expect(message?.media).toMatchObject({
        size: bytes.length,
        mime: "text/plain",
        name: expect.stringMatching(/^[0-9a-f-]{36}-file\.txt$/),
        original_name: "заметки 📎.txt",
      });
      expect(await Deno.readTextFile(message?.media?.path ?? "")).toBe("what is in the file");
    },
  },
  {
    name: "a file goes out with its text",
    needs: ["files out"],
    go: async (stage) => {
      const id = await begin(stage);
      const names = ["report.txt", "季度报告.txt", "דוח.csv", "रिपोर्ट 👨‍👩‍👧.tar.gz"];
      for (const [at, name] of names.entries()) {
        await send(stage, id, at === 0 ? "here it is" : "", new File(["the report"], name));
        await waitUntil("the file", () => stage.world.uploads().length === at + 1);
      }
      expect(stage.world.uploads().map(({ name, text }) => [name, text])).toEqual(
        names.map((name) => [name, "the report"]),
      );
      expect(texts(stage)).toContain("here it is");
    },
  },
  {
    name: "a question that its button answers once",
    needs: ["buttons", "groups"],
    isClosed: true,
    go: async (stage) => {
      const { world } = stage;
      const group = { chat: "-5", isGroup: true, isMention: true };
      const { id } = await ask(stage, await begin(stage, group), "Go on?", ["Yes", "No"]);
      const message = await asked(stage, "Go on?");
      expect(message.buttons).toEqual(["Yes", "No"]);
      world.press(message, "Yes", "66");
      world.press(message, "No");
      await answerIs(stage, id, "No");
      await waitUntil("the buttons are gone", () => {
        return world.sent().find((one) => one.id === message.id)?.buttons.length === 0;
      });
      world.press(message, "Yes");
      await world.say("say after it", group);
      await hears(stage, "after it");
      expect(await stage.app.call(`GET /api/questions/${id}`)).toMatchObject({
        answer: "No",
        answered_by: `platform:there:${world.person}`,
      });
      expect((await inbound(stage)).map(({ content }: { content: string }) => content)).toEqual([
        "say after it",
        "No",
        "say begun",
      ]);
    },
  },
  {
    name: "a reply to one of two questions answers that one",
    needs: ["replies"],
    go: async (stage) => {
      const message = await begin(stage);
      const first = await ask(stage, message, "Which colour?");
      const second = await ask(stage, message, "Which size?");
      const { id } = await asked(stage, "Which colour?");
      await asked(stage, "Which size?");
      await stage.world.say("green", { repliesTo: id });
      await answerIs(stage, first.id, "green");
      expect(await stage.app.call(`GET /api/questions/${second.id}`)).toMatchObject({ status: "open" });
    },
  },
  {
    name: "commands with / and !, while other text stays text",
    needs: ["commands"],
    go: async (stage) => {
      const { world, app } = stage;
      await world.say("!help");
      await waitUntil(
        "the list of commands",
        () => texts(stage).some((text) => text.includes("/stop: cancel the work")),
      );
      await world.say("!workers");
      await hears(stage, "@Ada");
      await world.say("until /never/there");
      await app.until("execution.started");
      await world.say("!status");
      await waitUntil(
        "status",
        () => texts(stage).some((text) => /^Ada: running for \d+ s\.$/.test(text)),
      );
      await world.say("!new");
      await waitUntil(
        "new",
        () => texts(stage).some((text) => text.startsWith("Started a new conversation")),
      );
      await world.say("!stop");
      await waitUntil("stopped", () => texts(stage).some((text) => text.startsWith("Stopped 1 running")));
      await app.settle();
      const tasks = () => app.call(`GET /api/tasks?session_key=there:${world.direct}`);
      expect(await tasks()).toMatchObject([{ status: "cancelled" }]);
      await world.say("!unknown is text");
      await waitUntil("a task", async () => (await tasks()).length === 2);
    },
  },
  {
    name: "pairing: messages from before are ignored",
    needs: ["pairing"],
    isClosed: true,
    go: async (stage) => {
      const { world, app } = stage;
      await world.say("say let me in", { from: "66" });
      await waitUntil("a code", () => texts(stage).some((text) => text.includes("svc ctl platform pair")));
      const code = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(texts(stage).join(" "))?.[0] ?? "";
      expect(await inbound(stage)).toEqual([]);
      await app.call("POST /api/platforms/pair", { code, sender: "66" });
      await world.say("say thanks", { from: "66" });
      await hears(stage, "thanks");
    },
  },
  {
    name: "a restart in the middle: messages from before and during it get one reply each",
    needs: [],
    go: async (stage) => {
      const gate = join(stage.app.dataDir, "gate");
      const isLost = stage.world.can.has("lost meanwhile");
      await stage.world.say(`until ${gate}`);
      await stage.app.until("execution.started");
      await stage.again(async () => {
        await Deno.writeTextFile(gate, "");
        if (!isLost) await stage.world.say("say meanwhile");
      });
      if (isLost) await stage.world.say("say meanwhile");
      await hears(stage, `found ${gate}`);
      await hears(stage, "meanwhile");
      await stage.app.settle();
      expect([said(stage, `found ${gate}`), said(stage, "meanwhile")]).toEqual([1, 1]);
    },
  },
  {
    name: "the same event again changes nothing",
    needs: [],
    go: async (stage) => {
      const id = await stage.world.say("say once");
      await stage.world.say("say once", { id });
      await hears(stage, "once");
      await stage.world.say("say once", { id });
      await stage.world.say("say last");
      await hears(stage, "last");
      expect(said(stage, "once")).toBe(1);
      expect(await inbound(stage)).toHaveLength(2);
    },
  },
  {
    name: "an edit of a message changes nothing",
    needs: ["edits"],
    go: async (stage) => {
      const id = await stage.world.say("say first");
      await hears(stage, "first");
      await stage.world.say("say other", { id, isEdit: true });
      await stage.world.say("say last");
      await hears(stage, "last");
      expect(await inbound(stage)).toHaveLength(2);
    },
  },
  {
    name: "a chat with a rate limit gets the reply later, and no attempt counts",
    needs: ["limits"],
    go: async (stage) => {
      const { world, app } = stage;
      world.limit(world.person, true);
      await world.say("say later");
      await app.until("message.undelivered");
      expect((await app.call("GET /api/messages/outbound?status=failed"))[0]).toMatchObject({
        attempt: 0,
        next_attempt_at: expect.any(Number),
      });
      world.limit(world.person, false);
      await hears(stage, "later");
      expect(said(stage, "later")).toBe(1);
    },
  },
  {
    name: "an invalid key is reported without showing it, and the service continues (contract 10.4)",
    needs: ["keys"],
    isRevoked: true,
    go: async ({ world, app }) => {
      await waitForState(app, "there", "refused");
      const check = await readPlatformCheck(app);
      expect(check).toMatchObject({ status: "warn", detail: expect.stringMatching(world.refusal) });
      const tested = await app.call("POST /api/platforms/there/test");
      expect(tested).toMatchObject({ ok: false, detail: expect.stringMatching(world.refusal) });
      for (const name of MANIFESTS.find(({ kind }) => kind === world.kind)?.secrets ?? []) {
        expect(JSON.stringify([check, tested])).not.toContain(world.config[name]);
      }
    },
  },
  {
    name: "replies wait without an attempt while the key is invalid (contract 10.3)",
    needs: ["keys at work"],
    go: async ({ world, app }) => {
      await world.say("sleep 1");
      await app.until("execution.started");
      world.revoke(true);
      await app.until("message.undelivered");
      expect(await readReply(app)).toMatchObject({
        status: "failed",
        attempt: 0,
        error: expect.stringMatching(world.refusal),
        next_attempt_at: expect.any(Number),
      });
      world.revoke(false);
      await waitForText(world, "slept 1");
    },
  },
  {
    name: "a lost answer: the reply is sent again once, never a third time",
    needs: [],
    go: async (stage) => {
      const { world, app } = stage;
      world.loseAnswer();
      await world.say("say once or twice");
      await waitUntil("the reply", () => said(stage, "once or twice") === world.copiesOfLost);
      await app.settle();
      for (let i = 0; i < 2; i++) world.loseAnswer();
      await world.say("say never a third");
      await waitUntil("the service gives the reply up", async () => {
        const [row] = await app.call("GET /api/messages/outbound?status=failed");
        return row?.next_attempt_at === null && row.error.includes("may have arrived");
      });
      expect(said(stage, "never a third")).toBe(world.copiesOfLost);
    },
  },
  {
    name: "a long text arrives whole",
    needs: [],
    go: async (stage) => {
      const { world } = stage;
      const long = Array.from({ length: 8_000 }, (_, i) => `sentence ${i}.`).join(" ");
      await send(stage, await begin(stage), long);
      const whole = () => [...texts(stage), ...world.uploads().map(({ text }) => text)];
      await waitUntil("the whole text", () => whole().includes(long));
      expect(texts(stage).length).toBeLessThanOrEqual(4);
    },
  },
  {
    name: "replies arrive in order",
    needs: [],
    go: async (stage) => {
      const id = await begin(stage);
      const all = Array.from({ length: 8 }, (_, i) => `number ${i}`);
      for (const text of all) await send(stage, id, text);
      await hears(stage, "number 7");
      expect(texts(stage).filter((text) => text.startsWith("number"))).toEqual(all);
    },
  },
];
