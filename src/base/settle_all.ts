/** Waits like Promise.all(), but until every promise has settled. Throws the first error in their order. */
export async function settleAll<T>(work: Iterable<Promise<T>>): Promise<T[]> {
  const ended = await Promise.allSettled(work);
  return ended.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}
