import type { Locked } from "./lock.ts";

/** A published weakness of a package in all versions below one. */
export interface Advisory {
  package: string;
  below: string;
  id: string;
}

/** Lists the locked packages that have a weakness in this list, one line each. */
export function listVulnerable(locked: Locked[], advisories: Advisory[]): string[] {
  return locked.flatMap(({ name, version }) =>
    advisories
      .filter((one) => one.package === name && isBelow(version, one.below))
      .map((one) => `${name} ${version} has ${one.id}; update it to ${one.below} or newer`)
  );
}

/**
 * Asks the npm registry which of these packages have a weakness, one line each. Returns null when the registry does not answer
 * this query, as mirrors do.
 */
export async function askRegistry(registry: string, locked: Locked[]): Promise<string[] | null> {
  const versions: Record<string, string[]> = {};
  for (const { name, version } of locked) (versions[name] ??= []).push(version);
  const answer = await fetch(new URL("-/npm/v1/security/advisories/bulk", registry), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(versions),
    signal: AbortSignal.timeout(30_000),
  }).catch(() => null);
  if (!answer?.ok) {
    await answer?.body?.cancel();
    return null;
  }
  const found = await answer.json() as Record<
    string,
    { title: string; url: string; vulnerable_versions: string }[]
  >;
  return Object.entries(found).flatMap(([name, ones]) =>
    ones.map((one) => `${name} ${one.vulnerable_versions}: ${one.title} (${one.url})`)
  );
}

function isBelow(version: string, limit: string): boolean {
  const [left, right] = [version, limit].map((text) => text.split("-")[0]?.split(".").map(Number) ?? []);
  for (let at = 0; at < 3; at++) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
