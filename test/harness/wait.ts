/** The longest wait for an event, in ms. The event ends the wait, so the limit costs nothing. */
export const WAIT_MAX_MS = 60_000;

/** Resolves when `done` returns true; calls it repeatedly. Throws after `ms`, with this message. */
export async function waitUntil(
  words: string,
  done: () => boolean | Promise<boolean>,
  ms = WAIT_MAX_MS,
): Promise<void> {
  const began = performance.now();
  while (!await done()) {
    if (performance.now() - began > ms) throw new Error(`It took longer than ${ms} ms: ${words}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Returns the first value of `look` that is not null; calls it repeatedly. Throws after `ms`. */
export async function waitForValue<T>(look: () => Promise<T | null>, ms = WAIT_MAX_MS): Promise<T> {
  let seen = await look();
  await waitUntil("there is nothing yet", async () => seen !== null || (seen = await look()) !== null, ms);
  if (seen === null) throw new Error("there is nothing");
  return seen;
}
