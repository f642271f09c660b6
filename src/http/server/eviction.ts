import type { TcpStream } from "./tcp_stream.ts";

/** User of a connection before its request is authenticated. */
export const NO_TOKEN = "";
/** All people share one name, because their connections are never closed for others. */
export const PERSON = "person";

export interface OpenConnection {
  stream: TcpStream | null;
  address: string;
  /** Requests without a complete response. */
  requests: number;
  /** Resolves when the responses to all requests so far are sent. */
  answered: Promise<void>;
  /** Whether the client ever sent a request. */
  used: boolean;
  /** Start of the idle time or of the use, monotonic ms. */
  since: number;
  /** NO_TOKEN, PERSON, the id of an execution, or `runner:<id>`. */
  usedBy: string;
}

/** Creates a connection without requests. `stream` is null on Deno 2.6. */
export function createOpenConnection(stream: TcpStream | null, address: string): OpenConnection {
  const since = performance.now();
  return { stream, address, requests: 0, answered: Promise.resolve(), used: false, since, usedBy: NO_TOKEN };
}

/** Chooses the connection to close for a new one. Returns null when people use all of them (reliability BYT-3). */
export function chooseForClosing(connections: ReadonlySet<OpenConnection>): OpenConnection | null {
  return findLongestIdle(connections) ?? findLongestInUse([...connections]);
}

// Prefers a connection that never sent a request. The set is in order of arrival, so the first one found is the oldest.
function findLongestIdle(connections: Iterable<OpenConnection>): OpenConnection | null {
  let found: OpenConnection | null = null;
  for (const connection of connections) {
    if (connection.requests > 0) continue;
    if (!connection.used) return connection;
    if (found === null || connection.since < found.since) found = connection;
  }
  return found;
}

function findLongestInUse(connections: readonly OpenConnection[]): OpenConnection | null {
  return findOldest(connections.filter(({ usedBy }) => usedBy === NO_TOKEN)) ??
    findOldest(listGreediestAgent(connections));
}

function findOldest(connections: readonly OpenConnection[]): OpenConnection | null {
  return connections.reduce<OpenConnection | null>(
    (found, connection) => found === null || connection.since < found.since ? connection : found,
    null,
  );
}

function listGreediestAgent(connections: readonly OpenConnection[]): readonly OpenConnection[] {
  // A runner repeats a request that was cut off.
  const agents = Map.groupBy(connections.filter(({ usedBy }) => usedBy !== PERSON), ({ usedBy }) => usedBy);
  return [...agents.values()].reduce((largest, group) => group.length > largest.length ? group : largest, []);
}
