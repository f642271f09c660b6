import { nameKey } from "../call/name.ts";
import type { Candidate, Route } from "./routing.ts";

/** Finds a worker by name or id. */
export function findByName(candidates: readonly Candidate[], name: string): Candidate | undefined {
  return candidates.find((worker) =>
    nameKey(worker.name) === nameKey(name) || worker.id === name.toLowerCase()
  );
}

/** Routes a program's message to the worker of its platform. The text contains no mentions and no commands (contract 10). */
export function routeData(text: string, candidates: readonly Candidate[], name: string): Route {
  const worker = findByName(candidates, name);
  if (worker !== undefined) {
    return {
      to: "worker",
      workerId: worker.id,
      instruction: text,
      reason: `${worker.name} is the worker of this platform`,
    };
  }
  return {
    to: "nobody",
    text: `Cannot route this message: the configuration of this platform names the worker ${
      JSON.stringify(name)
    }, which does not exist.`,
    reason: "the worker of this platform does not exist",
  };
}
