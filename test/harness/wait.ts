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
