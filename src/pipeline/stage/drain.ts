// How long a stop waits for pending answers.
const STOP_WAIT_MAX_MS = 2_000;

/** Resolves when all promises have, or after 2 s. The next start handles what is still pending. */
export async function waitBriefly(promises: Iterable<Promise<unknown>>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, STOP_WAIT_MAX_MS);
  await Promise.race([Promise.all(promises), late.promise]);
  clearTimeout(timer);
}
