import { describe, expect, it } from "vitest";
import { BODY_PIECE_MAX_MS, openIncomingBody } from "../../../src/http/server/incoming_body.ts";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

/** Creates a body that the test writes, and its reader. */
function incoming(clock: TestClock) {
  const { readable, writable } = new TransformStream<Uint8Array>(undefined, undefined, {
    highWaterMark: 100,
  });
  const body = openIncomingBody(new Request("http://localhost/", { method: "POST", body: readable }), clock);
  if (body === null) throw new Error("there is a body");
  const writer = writable.getWriter();
  return { body, send: (bytes: number) => void writer.write(new Uint8Array(bytes)) };
}

/** Reads the next piece, which arrives after `ms`. */
async function next(
  clock: TestClock,
  { body, send }: ReturnType<typeof incoming>,
  bytes: number,
  ms: number,
): Promise<number | string> {
  const read = body.read().then((piece) => piece?.length ?? 0, (error) => String(error.message));
  clock.advance(ms);
  send(bytes);
  return await read;
}

const LATE = "Cannot read the body: it arrived too slowly";

describe("a slow body [BKP-4]", () => {
  it("is refused after exactly half a minute without a piece [BKP-4]", async () => {
    const clock = new TestClock();
    expect(await next(clock, incoming(clock), 5, BODY_PIECE_MAX_MS - 1)).toBe(5);
    expect(await next(clock, incoming(clock), 5, BODY_PIECE_MAX_MS)).toBe(LATE);
    const large = incoming(clock);
    expect(await next(clock, large, 1_000_000, 0)).toBe(1_000_000);
    expect(await next(clock, large, 1, BODY_PIECE_MAX_MS)).toBe(LATE);
  });

  it("is refused below 4 KiB a second, and accepted at that rate for any time [BKP-4]", async () => {
    const clock = new TestClock();
    const drips = incoming(clock);
    const read: (number | string)[] = [];
    for (let second = 0; second < 40 && read.at(-1) !== LATE; second++) {
      read.push(await next(clock, drips, 1, 1_000));
    }
    // Half a minute plus the time earned by thirty bytes.
    expect([read.length, read.at(-1)]).toEqual([31, LATE]);
    const steady = incoming(clock);
    for (let second = 0; second < 200; second++) {
      expect(await next(clock, steady, 4_100, 1_000)).toBe(4_100);
    }
  });

  it("is not refused because of a slow disk of the service", async () => {
    const clock = new TestClock();
    const file = incoming(clock);
    for (let piece = 0; piece < 10; piece++) {
      expect(await next(clock, file, 1, 100)).toBe(1);
      clock.advance(BODY_PIECE_MAX_MS);
    }
  });

  it("gets the refusal over the network, for JSON without a token, for a form and for a tool [BKP-4]", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    const { id } = await app.call("POST /api/local/sessions");
    const { hostname, port } = new URL(app.url);
    const cases = [
      ["/api/auth/login", "application/json", 400],
      [`/api/local/sessions/${id}/media`, "multipart/form-data; boundary=b", 400],
      ["/mcp", "application/json", 400],
    ] as const;
    for (const [path, type, status] of cases) {
      using connection = await Deno.connect({ hostname, port: Number(port) });
      // The test clock outlives the token.
      const token = await app.token();
      const head = [
        `POST ${path} HTTP/1.1`,
        "host: localhost",
        `content-type: ${type}`,
        ...(path === "/api/auth/login" ? [] : [`authorization: Bearer ${token}`]),
        "content-length: 1000",
      ];
      await connection.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n--b\r\n`));
      let said = "";
      void (async () => {
        for await (const part of connection.readable) said += new TextDecoder().decode(part);
      })().catch(() => {});
      await waitUntil(`${path} is refused`, () => {
        clock.advance(1_000);
        return said.includes("too slowly");
      });
      expect([path, said]).toEqual([path, expect.stringMatching(new RegExp(`^HTTP/1.1 ${status} `))]);
    }
  });
});
