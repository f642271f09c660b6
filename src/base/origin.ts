import { AsyncLocalStorage } from "node:async_hooks";

/** Where a change comes from (contract 9, audit). */
export interface Origin {
  /** Who calls, as the journal names actors. */
  actor: string;
  address: string;
  userAgent: string;
}

const NOWHERE: Omit<Origin, "actor"> = { address: "", userAgent: "" };

/** Longest user agent that is kept, in characters. */
const USER_AGENT_MAX = 300;

const current = new AsyncLocalStorage<Origin>();

/**
 * Does `work` as a request of this origin: whatever it writes into the journal in the caller's name says where it came from,
 * and none can forget it. What the service does by itself has no origin.
 */
export function withOrigin<T>(origin: Origin, work: () => Promise<T>): Promise<T> {
  return current.run({ ...origin, userAgent: origin.userAgent.slice(0, USER_AGENT_MAX) }, work);
}

/** From where this actor acts now; empty when it is not the one whose request is being answered. */
export function originOf(actor: string): Omit<Origin, "actor"> {
  const origin = current.getStore();
  return origin === undefined || origin.actor !== actor ? NOWHERE : origin;
}

/** Says who the request turned out to be from: somebody who logs in is known only when it is done. */
export function nameOrigin(actor: string): void {
  const origin = current.getStore();
  if (origin !== undefined) origin.actor = actor;
}
