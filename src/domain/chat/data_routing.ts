import { nameKey } from "../call/name.ts";
import type { Candidate, Route } from "./routing.ts";

/** The worker with this name or id, or undefined. */
export function findByName(candidates: readonly Candidate[], name: string): Candidate | undefined {
  return candidates.find((worker) =>
    nameKey(worker.name) === nameKey(name) || worker.id === name.toLowerCase()
  );
}

/** What a program sent goes to the worker of its platform, word by word: nothing in it is a mention or a command (contract 10). */
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
    text: `No worker is called ${JSON.stringify(name)}, which this platform names in the configuration.`,
    reason: "the worker of this platform does not exist",
  };
}
