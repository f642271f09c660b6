// How long a stop waits for the answers of others.
const STOP_WAIT_MAX_MS = 2_000;

/** Resolves when no answer is awaited any more, or after 2 s: what is left is looked at after the next start. */
export async function settledSoon(awaited: Iterable<Promise<unknown>>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, STOP_WAIT_MAX_MS);
  await Promise.race([Promise.all(awaited), late.promise]);
  clearTimeout(timer);
}
