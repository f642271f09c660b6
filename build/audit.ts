import { type Advisory, askRegistry, listVulnerable } from "./advisories.ts";
import list from "./advisories.json" with { type: "json" };
import { readLock } from "./lock.ts";

// Exits 1 when a locked package has a published weakness: by the list in this directory, and by npm's registry where it answers.
const { checked, advisories }: { checked: string; advisories: Advisory[] } = list;
const locked = [...(await readLock()).values()].flat();
const answered = await askRegistry(readRegistry(), locked);
const found = [...listVulnerable(locked, advisories), ...(answered ?? [])];
for (const line of found) console.error(line);
if (answered === null) {
  console.log(`The registry answers no query for advisories. Only the list of ${checked} was checked.`);
}
console.log(`${locked.length} packages checked, ${found.length} with a known weakness`);
if (found.length > 0) Deno.exit(1);

function readRegistry(): string {
  const { stdout } = new Deno.Command("npm", { args: ["config", "get", "registry"] }).outputSync();
  const address = new TextDecoder().decode(stdout).trim();
  return address.endsWith("/") ? address : `${address}/`;
}
