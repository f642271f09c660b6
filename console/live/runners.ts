import { useEffect } from "preact/hooks";
import { api, askAll, askPage, type Schemas } from "./api.ts";
import { type Resource, useResource } from "./resource.ts";

/** Another machine that runs workers (contract 18). */
export type Runner = Schemas["Runner"];

const PAGE_SIZE = 100;
// The service has no more.
const RUNNERS_READ = 1_000;
const AGAIN_MS = 5_000;

/** Every runner, newest first. That one comes, or is not heard of any more, is no event: it is looked at again and again while it is seen. */
export function useRunners(): Resource<Runner[]> {
  const read = useResource("runners", readRunners, ({ kind }) => /^(runner|execution)\./.test(kind));
  useEffect(() => {
    const timer = setInterval(() => document.hidden || read.reload(), AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  return read;
}

/** Those that have all of these labels. */
export function withLabels(runners: readonly Runner[], labels: readonly string[]): Runner[] {
  return runners.filter((runner) => labels.every((label) => runner.labels.includes(label)));
}

/** Every runner as it is now. Throws Refusal. */
export function readRunners(signal: AbortSignal): Promise<Runner[]> {
  return askAll((cursor) => {
    const query = { page_size: PAGE_SIZE, ...(cursor === undefined ? {} : { cursor }) };
    return askPage(api.GET("/api/runners", { params: { query }, signal }));
  }, RUNNERS_READ);
}
