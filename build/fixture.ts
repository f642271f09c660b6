// `make fixture`: writes the schema of this source, with a few rows, to test/fixtures/schema_NNNN.sql. Every release runs
// it: a released schema that changed shows as a difference, a new one as a new file (reliability BAK-7).
import { join } from "node:path";
import { Database } from "../src/store/database.ts";
import { SCHEMA_VERSION } from "../src/store/migrate.ts";
import { startServer, svc } from "../test/harness/process.ts";
import { dumpRows, dumpSchema } from "../test/harness/fixture.ts";
import { ROOT } from "./lock.ts";

const file = join(ROOT, "test/fixtures", `schema_${String(SCHEMA_VERSION).padStart(4, "0")}.sql`);
const folder = await Deno.makeTempDir({ prefix: "svc-fixture-" });
try {
  const server = await startServer({ dataDir: folder });
  const ctl = async (...args: string[]) => {
    const { code, out, err } = await svc(["ctl", ...args], { dataDir: folder });
    if (code !== 0) throw new Error(`svc ctl ${args.join(" ")} ended with ${code}: ${err}`);
    return out.trim();
  };
  try {
    await ctl("department", "create", "-n", "Newsroom");
    const worker = await ctl("worker", "create", "-n", "Ada", "--department", "Newsroom", "-q");
    await ctl("chat", "@Ada good morning");
    await ctl("memory", "save", "--scope", "global", "--key", "style", "--value", "plain");
    await ctl("task", "create", "--message-id", "m1", "--worker-id", worker, "--instruction", "write", ...[
      "--type",
      "scheduled",
      "--cron",
      "0 8 * * *",
    ]);
  } finally {
    await server.end("SIGTERM");
  }
  const db = await Database.open(`file:${join(folder, "svc.db")}`);
  const schema = await dumpSchema(db);
  const known = await Deno.readTextFile(file).catch(() => "");
  // The rows differ with each run, so they are written again only when the schema changed.
  if (known.startsWith(schema)) console.log(`${file} is as it should be`);
  else {
    await Deno.writeTextFile(file, schema + (await dumpRows(db)).replaceAll(folder, "/data"));
    console.log(`wrote ${file}`);
  }
  await db.close();
} finally {
  await Deno.remove(folder, { recursive: true });
}
