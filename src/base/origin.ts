import { AsyncLocalStorage } from "node:async_hooks";

/** The source of a change, for the audit log. */
export interface Origin {
  /** The caller as the journal names actors. */
  actor: string;
  address: string;
  userAgent: string;
}

const NOWHERE: Omit<Origin, "actor"> = { address: "", userAgent: "" };

/** Longest stored user agent, in characters. */
const USER_AGENT_MAX = 300;

const current = new AsyncLocalStorage<Origin>();

/**
 * Runs `work` as a request from this origin: journal entries in the caller's name get its address and user agent
 * automatically. The service's own changes have no origin.
 */
export function runWithOrigin<T>(origin: Origin, work: () => Promise<T>): Promise<T> {
  return current.run({ ...origin, userAgent: origin.userAgent.slice(0, USER_AGENT_MAX) }, work);
}

/** Returns the origin of the current request if `actor` sent it, or else an empty origin. */
export function getOrigin(actor: string): Omit<Origin, "actor"> {
  const origin = current.getStore();
  return origin === undefined || origin.actor !== actor ? NOWHERE : origin;
}

/** Sets the caller of the current request. A login knows its caller only at the end. */
export function setOriginActor(actor: string): void {
  const origin = current.getStore();
  if (origin !== undefined) origin.actor = actor;
}
