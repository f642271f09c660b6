import type { Caller } from "../../domain/call/scope.ts";
import type { TcpStream } from "./tcp_stream.ts";

/** User of a connection before its request is authenticated. */
export const NO_TOKEN = "";
const PERSON_PREFIX = "person:";
/** A person keeps this many connections when one must be closed for a new connection or an agent. A browser opens six to one host. */
const PERSON_KEEPS_MIN = 6;
/** Streams leave every eighth connection free for short requests. */
const FREE_OF_STREAMS = 8;

/** Returns the user of a connection. All connections and tokens of a person have the same user. */
export function nameUser({ person, run, runner }: Caller): string {
  if (runner !== undefined) return `runner:${runner.id}`;
  return run?.execution_id ?? `${PERSON_PREFIX}${person?.userId ?? ""}`;
}

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
  /** NO_TOKEN, or the name of a user by nameUser(). */
  usedBy: string;
  /** Whether an unfinished response is being sent, such as a stream, a long poll or a download. */
  streams: boolean;
}

/** Creates a connection without requests. `stream` is null on Deno 2.6. */
export function createOpenConnection(stream: TcpStream | null, address: string): OpenConnection {
  const since = performance.now();
  return {
    ...{ stream, address, requests: 0, answered: Promise.resolve() },
    ...{ used: false, since, usedBy: NO_TOKEN, streams: false },
  };
}

/**
 * Chooses the connection to close for a new one: the connection that has been idle longest, else one in use without a token, else one of
 * the user with most connections. Returns null when people with few connections use all of them (reliability BYT-3).
 */
export function chooseForClosing(connections: ReadonlySet<OpenConnection>): OpenConnection | null {
  const all = [...connections];
  return findLongestIdle(all) ?? findOldest(all.filter(({ usedBy }) => usedBy === NO_TOKEN)) ??
    chooseOfGreediest(all);
}

/**
 * Chooses the stream to close after `latest` was opened: the oldest stream of the user with most streams. Returns null while enough of
 * `max` connections are free of streams.
 */
export function chooseStreamForClosing(
  connections: ReadonlySet<OpenConnection>,
  latest: OpenConnection,
  max: number,
): OpenConnection | null {
  const streams = [...connections].filter((connection) => connection.streams);
  if (streams.length <= max - countFreeOfStreams(max)) return null;
  const greediest = findGreediest(streams);
  if (greediest.length > 0) return findOldest(greediest);
  const groups = [...Map.groupBy(streams, ({ usedBy }) => usedBy).values()];
  const own = groups.find((group) => group.includes(latest)) ?? [];
  const largest = findLargest(groups);
  return findOldest(largest.length > own.length ? largest : own);
}

// With a limit of one or two connections, streams may use all.
function countFreeOfStreams(max: number): number {
  return max <= 2 ? 0 : Math.ceil(max / FREE_OF_STREAMS);
}

// Prefers a connection that never sent a request. The connections are in order of arrival, so the first one found is the oldest.
function findLongestIdle(connections: readonly OpenConnection[]): OpenConnection | null {
  let found: OpenConnection | null = null;
  for (const connection of connections) {
    if (connection.requests > 0) continue;
    if (!connection.used) return connection;
    if (found === null || connection.since < found.since) found = connection;
  }
  return found;
}

// Prefers streams, because a browser opens its stream again.
function chooseOfGreediest(connections: readonly OpenConnection[]): OpenConnection | null {
  const greediest = findGreediest(connections);
  return findOldest(greediest.filter(({ streams }) => streams)) ?? findOldest(greediest);
}

/**
 * Finds the connections of the user with most connections: an agent, a runner, or a person with more than PERSON_KEEPS_MIN. Agents and
 * runners come before people with the same number, because a runner repeats a request that was cut off.
 */
function findGreediest(connections: readonly OpenConnection[]): readonly OpenConnection[] {
  const groups = [...Map.groupBy(connections, ({ usedBy }) => usedBy)];
  const people = groups.filter(([name, group]) => isPerson(name) && group.length > PERSON_KEEPS_MIN);
  return findLargest([...groups.filter(([name]) => !isPerson(name)), ...people].map(([, group]) => group));
}

function isPerson(usedBy: string): boolean {
  return usedBy.startsWith(PERSON_PREFIX);
}

/** Returns the largest group (the first of several), or an empty group. */
function findLargest(groups: readonly OpenConnection[][]): readonly OpenConnection[] {
  return groups.reduce<OpenConnection[]>(
    (largest, group) => group.length > largest.length ? group : largest,
    [],
  );
}

function findOldest(connections: readonly OpenConnection[]): OpenConnection | null {
  return connections.reduce<OpenConnection | null>(
    (found, connection) => found === null || connection.since < found.since ? connection : found,
    null,
  );
}
