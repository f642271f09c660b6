// Commands that Discord suggests when a person types `/`.
import { expect, it } from "vitest";
import { waitUntil } from "../harness/wait.ts";
import { DiscordWorld } from "./worlds/discord.ts";
import { openWorld } from "./worlds/open.ts";

const open = (world: DiscordWorld) => openWorld("guild", world, { more: { allow: ["7"] } });
const offered = (world: DiscordWorld) =>
  waitUntil("seven commands", () => world.fake.commands.filter(({ type }) => type === 1).length === 7);
const hears = (world: DiscordWorld, text: string) =>
  waitUntil(text, () => world.sent().some((one) => one.text.includes(text)));
const told = (world: DiscordWorld) => world.fake.callbacks.map(({ data }) => data.content);

it("are registered once, next to other commands of the bot, and again after a change", async () => {
  await using world = new DiscordWorld();
  const { fake } = world;
  fake.commands.push({ id: "1", name: "menu", type: 2 }, {
    id: "2",
    name: "help",
    description: "old",
    type: 1,
  });
  {
    await using _app = await open(world);
    await waitUntil("all commands", () => fake.commandsMade === 7);
  }
  expect(fake.commands.map(({ name }) => name)).toEqual([
    ...["menu", "help", "workers", "status", "steer", "stop", "new", "answer"],
  ]);
  await using _again = await open(world);
  await waitUntil("it is connected again", () => fake.gateway.listening === 1);
  await world.say("/help");
  await hears(world, "list the commands");
  expect(fake.commandsMade).toBe(7);
  expect(world.faults()).toEqual([]);
});

it("work in direct chats and channels as if typed, and are answered in the chat", async () => {
  await using world = new DiscordWorld();
  await using app = await open(world);
  await offered(world);
  world.pick("workers", "");
  await hears(world, "@Ada");
  world.pick("status", "", { isGroup: true });
  await hears(world, "Nothing");
  expect(world.sent().map(({ chat }) => chat)).toEqual(["7", "-5"]);
  await world.say("say begun");
  await hears(world, "begun");
  await app.settle();
  const [message] = await app.call("GET /api/messages/inbound?session_key=guild:D7");
  const { id } = await app.call("POST /api/questions", { message_id: message.id, text: "Which colour?" });
  await hears(world, "Which colour?");
  world.pick("answer", "dark green");
  await waitUntil(
    "it is answered",
    async () => (await app.call(`GET /api/questions/${id}`)).answer === "dark green",
  );
  await waitUntil("all answers to the commands", () => told(world).length === 3);
  expect(told(world)).toEqual(["> /workers", "> /status", "> /answer dark green"]);
  expect(world.faults()).toEqual([]);
});

it("are refused to strangers, and a bot without the right to register works without them", async () => {
  await using world = new DiscordWorld();
  await using app = await open(world);
  await offered(world);
  world.pick("stop", "", { from: "66", isGroup: true });
  await waitUntil("the answer to the command", () => told(world).length === 1);
  expect(told(world)).toEqual(["You can't use this command here."]);
  expect(await app.call("GET /api/messages/inbound")).toEqual([]);
  expect(world.sent()).toEqual([]);
  await using other = new DiscordWorld();
  other.fake.isWithoutCommands = true;
  await using _app = await open(other);
  await other.say("!help");
  await hears(other, "list the commands");
  expect(other.faults()).toEqual([]);
});
