import { describe, expect, it } from "vitest";
import { hashPassword } from "../../../src/api/account/password.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";

const LOGIN = "POST /api/auth/login";

describe("an unchecked login is no failed login [AUT-4]", () => {
  it("a correct login succeeds right after a flood from its address: overload refusals do not count", async () => {
    const password_hash = await hashPassword(PASSWORD, { ln: 14, r: 8, p: 1 });
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock, config: { auth: { password_hash } } });
    const right = { username: "admin", password: PASSWORD };
    const flood = await Promise.all(Array.from({ length: 100 }, () => app.send(LOGIN, right)));
    const statuses = flood.map(({ status }) => status);
    expect(statuses).toContain(429);
    expect((await app.send(LOGIN, right)).status).toBe(200);
  });

  it("random names from one network share three times the limit of one name, and further logins are refused", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const statuses: number[] = [];
    for (let i = 0; i < 40; i++) {
      statuses.push((await app.send(LOGIN, { username: `name${i}`, password: "x" })).status);
    }
    expect(statuses).toEqual([...Array(30).fill(401), ...Array(10).fill(429)]);
    clock.advance(50_000);
    expect((await app.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
  });

  it("a reached limit is stored immediately, so that a kill does not reset it", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const stored = () => app.db.read("select who from login_failure");
    for (let i = 0; i < 9; i++) await app.send(LOGIN, { username: "admin", password: "x" });
    expect(await stored()).toHaveLength(0);
    await app.send(LOGIN, { username: "admin", password: "x" });
    expect((await stored()).length).toBeGreaterThan(0);
  });
});

it("failed logins while the clock was two days ahead lock no user out after it is corrected [AUT-4]", async () => {
  const ahead = new TestClock("2026-01-07T08:00:10Z");
  const first = await openApp({ clock: ahead });
  for (let i = 0; i < 12; i++) await first.send(LOGIN, { username: "admin", password: "wrong" });
  expect((await first.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(429);
  ahead.jump("2026-01-05T08:00:10Z");
  expect((await first.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
  ahead.jump("2026-01-07T08:00:20Z");
  for (let i = 0; i < 12; i++) await first.send(LOGIN, { username: "admin", password: "wrong" });
  await first.stop();
  const clock = new TestClock("2026-01-05T08:00:10Z");
  await using later = await openApp({ clock, dataDir: first.dataDir });
  expect((await later.send(LOGIN, { username: "admin", password: PASSWORD })).status).toBe(200);
});
