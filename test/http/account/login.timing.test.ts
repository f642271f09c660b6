import { describe, expect, it } from "vitest";
import { hashPassword } from "../../../src/api/account/password.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { openClient } from "../../harness/service/client.ts";
import { createTempDir, startServer } from "../../harness/service/process.ts";

const LOGIN = "POST /api/auth/login";
const wrong = { username: "admin", password: "wrong" };

// The long run: SVC_TEST_LOGINS=200.
const LOGINS = Number(Deno.env.get("SVC_TEST_LOGINS") ?? 40);

/** The probability that two samples come from one distribution (Mann-Whitney U, two-sided, normal approximation). */
function sameDistribution(a: number[], b: number[]): number {
  const all = [...a.map((value) => ({ value, of: "a" })), ...b.map((value) => ({ value, of: "b" }))];
  all.sort((one, two) => one.value - two.value);
  const rankSum = all.reduce((sum, { of }, index) => of === "a" ? sum + index + 1 : sum, 0);
  const u = rankSum - a.length * (a.length + 1) / 2;
  const mean = a.length * b.length / 2;
  const deviation = Math.sqrt(a.length * b.length * (a.length + b.length + 1) / 12);
  const z = Math.abs(u - mean) / deviation;
  // Abramowitz and Stegun 26.2.17.
  const t = 1 / (1 + 0.2316419 * z);
  const tail = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI) *
    t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return 2 * tail;
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

describe("an unknown name and a wrong password [AUT-3]", () => {
  it(`take the same time, ${LOGINS} and ${LOGINS} attempts [AUT-3]`, async () => {
    const password_hash = await hashPassword(PASSWORD, { ln: 12, r: 8, p: 1 });
    await using app = await openApp({
      config: { auth: { password_hash, login_failures_per_minute: 10_000 } },
    });
    const timeOf = async (body: object) => {
      const started = performance.now();
      expect((await app.send(LOGIN, body)).status).toBe(401);
      return performance.now() - started;
    };
    const attempt = async () => {
      const names: number[] = [];
      const words: number[] = [];
      for (let i = 0; i < LOGINS; i++) {
        // Alternate the order, so that neither profits from the caches of the other.
        const turns: [number[], object][] = [[names, { username: "nobody", password: PASSWORD }], [
          words,
          wrong,
        ]];
        for (const [times, body] of i % 2 === 0 ? turns : turns.reverse()) times.push(await timeOf(body));
      }
      return { names, words };
    };
    await timeOf(wrong);
    // A random difference has a probability of 1 %. Three in a row are a real difference.
    let found = { p: 0, ratio: 0 };
    for (let round = 0; round < 3 && !(found.p > 0.01); round++) {
      const { names, words } = await attempt();
      found = { p: sameDistribution(names, words), ratio: median(names) / median(words) };
    }
    expect(found.p).toBeGreaterThan(0.01);
    expect(found.ratio).toBeGreaterThan(0.8);
    expect(found.ratio).toBeLessThan(1.25);
  }, 180_000);
});

it(
  "200 simultaneous logins are hashed a few at a time or get 429, and other requests are served [AUT-5]",
  async () => {
    await using folder = await createTempDir();
    const env = { SVC_AUTH_PASSWORD: "pass", SVC_AUTH__LOGIN_FAILURES_PER_MINUTE: "1000" };
    await using server = await startServer({ dataDir: folder.path, env });
    const api = await openClient(server.url);
    const login = async (index: number) => {
      const response = await fetch(`${server.url}/api/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username: `name${index}`, password: "wrong" }),
      });
      await response.body?.cancel();
      return { status: response.status, retryAfter: response.headers.get("retry-after") };
    };
    const before = { memory: await server.memory() };
    let over = false;
    let memory = 0;
    const flood = Promise.all(Array.from({ length: 200 }, (_, index) => login(index))).finally(() =>
      over = true
    );
    const times: number[] = [];
    while (!over) {
      const started = performance.now();
      await api.call("GET /api/workers");
      times.push(performance.now() - started);
      memory = Math.max(memory, await server.memory());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const answers = await flood;
    const refused = answers.filter(({ status }) => status === 401).length;
    // Eight logins wait, and up to two are hashed. A free slot is used again.
    const atOnce = navigator.hardwareConcurrency > 2 ? 2 : 1;
    expect(refused).toBeGreaterThanOrEqual(atOnce === 1 ? 8 : 10);
    expect(refused).toBeLessThanOrEqual(atOnce * 30);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(200 - refused);
    for (const { status, retryAfter } of answers) if (status === 429) expect(retryAfter).toBe("2");
    // A hash takes 64 MB.
    expect(memory - before.memory).toBeLessThan((atOnce + 1) * 70e6);
    times.sort((a, b) => a - b);
    expect(times[Math.floor(times.length * 0.95)]).toBeLessThan(250);
  },
  180_000,
);
