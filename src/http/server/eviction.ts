import type { TcpStream } from "./tcp_stream.ts";

/** Uses a connection until its request has shown a token: a body that is on its way, or an answer that the client does not read. */
export const NO_TOKEN = "";
/** All people count as one user, since their connections are never closed for others. */
export const PERSON = "person";

/** What is known of an open connection. */
export interface OpenConnection {
  stream: TcpStream | null;
  address: string;
  /** Requests whose answers are not sent yet. */
  requests: number;
  /** Resolves when the answers to all requests so far are sent. */
  answered: Promise<void>;
  /** Whether a request ever came. */
  used: boolean;
  /** Since when it is idle, or in use, monotonic ms. */
  since: number;
  /** Who uses it: nobody who is known, an agent by its run, a runner, or a person. */
  usedBy: string;
}

/** Starts to count a connection that has no requests yet; `stream` is null where Deno cannot hand it over. */
export function createOpenConnection(stream: TcpStream | null, address: string): OpenConnection {
  const since = performance.now();
  return { stream, address, requests: 0, answered: Promise.resolve(), used: false, since, usedBy: NO_TOKEN };
}

/** Chooses the connection that makes room for a new one, or null when people use all of them (reliability BYT-3). */
export function chooseForClosing(connections: ReadonlySet<OpenConnection>): OpenConnection | null {
  return longestIdle(connections) ?? longestInUse([...connections]);
}

// First one that never sent a request. They are in the order in which they came, and this is asked for each that comes.
function longestIdle(connections: Iterable<OpenConnection>): OpenConnection | null {
  let found: OpenConnection | null = null;
  for (const one of connections) {
    if (one.requests > 0) continue;
    if (!one.used) return one;
    if (found === null || one.since < found.since) found = one;
  }
  return found;
}

function longestInUse(connections: readonly OpenConnection[]): OpenConnection | null {
  return longestOf(connections.filter(({ usedBy }) => usedBy === NO_TOKEN)) ??
    longestOf(greediestAgent(connections));
}

function longestOf(connections: readonly OpenConnection[]): OpenConnection | null {
  return connections.reduce<OpenConnection | null>(
    (found, one) => found === null || one.since < found.since ? one : found,
    null,
  );
}

function greediestAgent(connections: readonly OpenConnection[]): readonly OpenConnection[] {
  // A runner repeats what was cut off.
  const agents = Map.groupBy(connections.filter(({ usedBy }) => usedBy !== PERSON), ({ usedBy }) => usedBy);
  return [...agents.values()].reduce((most, some) => some.length > most.length ? some : most, []);
}
