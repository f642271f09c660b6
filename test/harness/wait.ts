import { patient } from "./patience.ts";

/** Resolves when `done` answers true; it is called repeatedly. Throws after `ms`, longer on a busy machine, with this message. */
export async function eventually(
  words: string,
  done: () => boolean | Promise<boolean>,
  ms = 15_000,
): Promise<void> {
  const began = performance.now();
  while (!await done()) {
    if (performance.now() - began > patient(ms)) throw new Error(`It took longer than ${ms} ms: ${words}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What `look` finds when there is something to find; it is called repeatedly. Throws after `ms`, longer on a busy machine. */
export async function found<T>(look: () => Promise<T | null>, ms = 15_000): Promise<T> {
  let seen = await look();
  await eventually("there is nothing yet", async () => seen !== null || (seen = await look()) !== null, ms);
  if (seen === null) throw new Error("there is nothing");
  return seen;
}
