import { describe, expect, it } from "vitest";
import {
  chooseForClosing,
  chooseStreamForClosing,
  createOpenConnection,
  NO_TOKEN,
  type OpenConnection,
} from "../../../src/http/server/eviction.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { createToken, createUser } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";

const LIMIT = 16;

interface Stream {
  status: number;
  ended: boolean;
  close: () => Promise<void>;
}

/** Opens a stream and reads its first piece. Returns status 0 if its connection was closed. */
async function openStream(app: App, path: string, headers: Record<string, string>): Promise<Stream> {
  const response = await fetch(app.url + path, { headers }).catch(() => null);
  const reader = response?.body?.getReader();
  const stream = {
    status: response?.status ?? 0,
    ended: response === null,
    close: async () => await reader?.cancel().catch(() => {}),
  };
  void (async () => {
    while (await reader?.read().then(({ done }) => !done, () => false));
    stream.ended = true;
  })();
  return stream;
}

async function openMany(count: number, open: () => Promise<Stream>): Promise<Stream[]> {
  const streams: Stream[] = [];
  for (let i = 0; i < count; i++) streams.push(await open());
  return streams;
}

const getStatus = (app: App, path: string, headers: Record<string, string> = {}) =>
  fetch(app.url + path, { headers }).then(async (response) => {
    await response.body?.cancel();
    return response.status;
  }, () => 0);

function count(streams: Stream[]): number {
  return streams.filter(({ ended }) => !ended).length;
}

describe("a viewer with more streams than an address may have [BYT-3]", () => {
  const PATHS = ["/api/events", "/api/events?kind=task.created"];

  for (const [way, extra] of [["of a login", 0], ["of a login and named tokens", 3]] as const) {
    it(`${way} loses its oldest streams; health, the operator and other people get answers`, async () => {
      await using app = await openApp({ config: { server: { max_connections_per_address: LIMIT } } });
      const operator = { authorization: `Bearer ${await app.token()}` };
      const eve = await createUser(app, "Eve", "admin");
      const bob = await createUser(app, "Bob", "viewer");
      const callers = [eve.headers];
      for (let i = 0; i < extra; i++) {
        callers.push((await createToken(app, `t${i}`, ["read:*"], eve.headers)).headers);
      }
      const mine = await openStream(app, "/api/events", operator);
      let turn = 0;
      const greedy = await openMany(
        LIMIT * 3,
        () => openStream(app, PATHS[turn++ % 2] ?? "", callers[turn % callers.length] ?? {}),
      );
      for (let i = 0; i < 5; i++) {
        expect(await getStatus(app, "/livez")).toBe(200);
        expect(await getStatus(app, "/readyz")).toBe(200);
        expect(await getStatus(app, "/api/workers", operator)).toBe(200);
        expect(await getStatus(app, "/api/workers", bob.headers)).toBe(200);
      }
      expect(mine.ended).toBe(false);
      const others = [
        ...await openMany(4, () => openStream(app, "/api/events", operator)),
        ...await openMany(4, () => openStream(app, "/api/events", bob.headers)),
      ];
      expect(others.map(({ status, ended }) => [status, ended])).toEqual(Array(8).fill([200, false]));
      await expect.poll(() => count(greedy)).toBeLessThanOrEqual(LIMIT - 2 - 9);
      expect(count(greedy)).toBeGreaterThan(0);
      expect(greedy.at(-1)?.ended).toBe(false);
      expect(mine.ended).toBe(false);
      for (const stream of [...greedy, ...others, mine]) await stream.close();
    });
  }

  it("loses its oldest waits, also over all addresses", async () => {
    await using app = await openApp({
      config: {
        server: { max_connections: LIMIT, trusted_proxies: ["127.0.0.1"] },
        engines: buildFakeEngines(),
      },
    });
    const eve = await createUser(app, "Eve", "admin");
    const run = await startRun(app);
    let turn = 0;
    const greedy = await openMany(
      LIMIT * 2,
      () =>
        openStream(app, `/api/tasks/${run.taskId}/wait?timeout_ms=60000`, {
          ...eve.headers,
          "x-forwarded-for": `10.0.0.${turn++}`,
        }),
    );
    expect(await getStatus(app, "/livez")).toBe(200);
    expect(await getStatus(app, "/api/workers", { authorization: `Bearer ${await app.token()}` })).toBe(200);
    await expect.poll(() => count(greedy)).toBeLessThanOrEqual(LIMIT - 2);
    for (const stream of greedy) await stream.close();
  });

  it("through slow bodies gives way to new connections", async () => {
    await using app = await openApp({ config: { server: { max_connections_per_address: LIMIT } } });
    const eve = await createUser(app, "Eve", "admin");
    const { host, hostname, port } = new URL(app.url);
    const head = [
      "POST /api/workers HTTP/1.1",
      `host: ${host}`,
      `authorization: ${eve.headers.authorization}`,
      "content-type: application/json",
      "content-length: 100000",
      "expect: 100-continue",
    ];
    const held: Deno.TcpConn[] = [];
    for (let i = 0; i < LIMIT * 2; i++) {
      const one = await Deno.connect({ hostname, port: Number(port) });
      await one.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n{`));
      // The service knows the caller when it asks for the body.
      const answer = new Uint8Array(100);
      await one.read(answer);
      expect(new TextDecoder().decode(answer)).toMatch(/^HTTP\/1.1 100 /);
      held.push(one);
    }
    expect(await getStatus(app, "/livez")).toBe(200);
    for (const one of held) one.close();
  });
});

describe("chooseForClosing() and chooseStreamForClosing()", () => {
  let now = 0;
  const make = (usedBy: string, streams = true): OpenConnection => ({
    ...createOpenConnection(null, "10.0.0.1"),
    ...{ usedBy, streams, requests: 1, used: true, since: now++ },
  });
  const makeMany = (size: number, usedBy: string, streams = true) =>
    Array.from({ length: size }, () => make(usedBy, streams));

  it("choose the oldest of the user with most, a stream before another request", () => {
    const [few, many] = [makeMany(3, "person:a"), makeMany(9, "person:b")];
    many[0] = { ...make("person:b", false), since: -1 };
    expect(chooseForClosing(new Set([...few, ...many]))).toBe(many[1]);
    expect(chooseForClosing(new Set([...few, ...makeMany(1, "run"), ...many]))).toBe(many[1]);
    const agents = makeMany(9, "run");
    expect(chooseForClosing(new Set([...many, ...agents]))).toBe(agents[0]);
  });

  it("choose an idle connection first, then one in use without a token, then one of the greediest user", () => {
    const people = makeMany(9, "person:a");
    const [unknown, later] = [make(NO_TOKEN, false), make(NO_TOKEN, false)];
    const idle = { ...make("person:b", false), requests: 0 };
    const unused = { ...make(NO_TOKEN, false), requests: 0, used: false };
    expect(chooseForClosing(new Set([...people, unknown, later, idle, unused]))).toBe(unused);
    expect(chooseForClosing(new Set([...people, unknown, later, idle]))).toBe(idle);
    expect(chooseForClosing(new Set([...people, unknown, later]))).toBe(unknown);
    expect(chooseForClosing(new Set([...people, later]))).toBe(later);
    expect(chooseForClosing(new Set(people))).toBe(people[0]);
  });

  it("choose no stream when only one or two connections are allowed", () => {
    const both = makeMany(2, "person:a");
    expect(chooseStreamForClosing(new Set(both), both[1] as OpenConnection, 2)).toBeNull();
    const three = makeMany(3, "run");
    expect(chooseStreamForClosing(new Set(three), three[2] as OpenConnection, 3)).toBe(three[0]);
  });

  it("choose none of people with six connections or fewer for a new one", () => {
    expect(chooseForClosing(new Set(["a", "b"].flatMap((name) => makeMany(6, `person:${name}`))))).toBeNull();
    expect(chooseForClosing(new Set(makeMany(7, "person:a")))).not.toBeNull();
  });

  it("choose a stream only when less than an eighth is free, of the user with most", () => {
    const others = makeMany(13, "person:b");
    const latest = make("person:a");
    expect(chooseStreamForClosing(new Set([...others, latest]), latest, 16)).toBeNull();
    const more = make("person:a");
    expect(chooseStreamForClosing(new Set([...others, latest, more]), more, 16)).toBe(others[0]);
    const many = Array.from({ length: 15 }, (_, i) => make(`person:${i}`));
    expect(chooseStreamForClosing(new Set(many), many[14] as OpenConnection, 16)).toBe(many[14]);
    const short = [...makeMany(15, "person:b", false), latest];
    expect(chooseStreamForClosing(new Set(short), latest, 16)).toBeNull();
  });
});
