import { join } from "node:path";
import { expect, it } from "vitest";
import { createTempDir, SOURCE, startServer } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";
import { waitUntil } from "../harness/wait.ts";
import { SlackWorld } from "./worlds/slack.ts";
import { TelegramWorld } from "./worlds/telegram.ts";

it("a service loads only the code of the platforms that it uses", async () => {
  await using phone = new TelegramWorld();
  await using team = new SlackWorld();
  const off = { team: { ...team.config, enabled: false } };
  const none = await loadedBy({});
  expect(none.files).toContain("src/boot/platforms.ts");
  expect(none).toMatchObject({ folders: ["local"], hasSockets: false });
  const polling = await loadedBy({ ...off, phone: phone.config });
  expect(polling).toMatchObject({ folders: ["local", "telegram"], hasSockets: false });
  const connected = () => team.fake.sockets.size > 0;
  const both = await loadedBy({ phone: phone.config, team: team.config }, connected);
  expect(both).toMatchObject({ folders: ["local", "slack", "telegram"], hasSockets: true });
});

/** Lists the modules that a service ran, from the coverage of V8. */
async function loadedBy(platforms: Record<string, unknown>, isThere = () => true) {
  await using folder = await createTempDir();
  const [dataDir, counted] = [join(folder.path, "data"), join(folder.path, "counted")];
  const config = join(folder.path, "svc.yaml");
  await Deno.mkdir(dataDir);
  await Deno.writeTextFile(config, JSON.stringify({ platforms }));
  const env = { DENO_COVERAGE_DIR: counted };
  await using server = await startServer({ dataDir, args: ["-c", config], env, program: SOURCE });
  await waitUntil("it is connected", isThere);
  await server.end("SIGTERM");
  const modules: string[] = [];
  for await (const { name } of Deno.readDir(counted)) {
    modules.push(JSON.parse(await Deno.readTextFile(join(counted, name))).url);
  }
  const files = modules.map((url) => url.replace(`file://${ROOT}/`, "")).sort();
  const folders = new Set(
    files.flatMap((file) => /^src\/platform\/(\w+)\/(?!manifest\.ts$)/.exec(file)?.[1] ?? []),
  );
  return { files, folders: [...folders], hasSockets: files.some((file) => /node_modules\/ws\//.test(file)) };
}
