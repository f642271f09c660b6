/** Resolves when `done` answers true; it is called repeatedly. Throws after `ms` with this message. */
export async function eventually(
  words: string,
  done: () => boolean | Promise<boolean>,
  ms = 15_000,
): Promise<void> {
  const until = performance.now() + ms;
  while (!await done()) {
    if (performance.now() > until) throw new Error(`It took longer than ${ms} ms: ${words}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
