import { useEffect } from "preact/hooks";
import type { Schemas } from "./api.ts";
import { type Resource, useAll } from "./resource.ts";

type Runner = Schemas["Runner"];

const REFRESH_MS = 5_000;

/** Every runner, newest first. No event reports that a runner connects or stops responding, so the list is also read every 5 s. */
export function useRunners(): Resource<Runner[]> {
  const read = useAll("/api/runners", {}, /^(runner|execution)\./);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || read.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  return read;
}

/** Keeps the runners that have all of these labels. */
export function filterByLabels(runners: readonly Runner[], labels: readonly string[]): Runner[] {
  return runners.filter((runner) => labels.every((label) => runner.labels.includes(label)));
}
