import { describe, expect, it } from "vitest";
import { openApp } from "../harness/service/app.ts";

const ROWS = 25_000;
const PAGE = 100;

describe("list() (contract 1)", () => {
  it("returns the same numbered page from either end, up to the last page and beyond", async () => {
    await using app = await openApp({ inMemory: true });
    await app.db.write([{
      sql:
        `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < ${ROWS})
        select printf('%08x-0000-7000-8000-%012x', i, i), 'k', 'local', 'p' || i, '' || i, 'bee_processed', 0, i from n`,
      args: [],
    }]);
    const page = async (query: string) => {
      const reply = await app.send(`GET /api/messages/inbound?page_size=${PAGE}&${query}`);
      return {
        contents: reply.body.map((one: { content: string }) => Number(one.content)) as number[],
        next: reply.headers.get("link") !== null,
        total: reply.headers.get("x-total-count"),
      };
    };
    for (const number of [1, 100, 101, 102, 125, 200, 249, 250]) {
      const { contents, next, total } = await page(`page=${number}`);
      const first = ROWS - (number - 1) * PAGE;
      expect([number, contents]).toEqual([number, Array.from({ length: PAGE }, (_, i) => first - i)]);
      expect([number, next, total]).toEqual([number, number < 250, "10000+"]);
    }
    expect(await page("page=251")).toEqual({ contents: [], next: false, total: "10000+" });
    expect((await page("page=100000000")).contents).toEqual([]);
    const odd = await app.send("GET /api/messages/inbound?page_size=99&page=253");
    expect(odd.body.map((one: { content: string }) => Number(one.content))).toEqual(
      Array.from({ length: ROWS - 252 * 99 }, (_, i) => ROWS - 252 * 99 - i),
    );
  });

  it("returns the same rows for a wide and a narrow time range", async () => {
    await using app = await openApp({ inMemory: true });
    const now = Date.now();
    await app.db.write([{
      sql:
        `insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 12000)
        select substr(printf('%012x', ${now} + i), 1, 8) || '-' || substr(printf('%012x', ${now} + i), 9) ||
          printf('-7000-8000-%012x', i), 'k', 'local', 'p' || i, '' || i, 'bee_processed', 0, ${now} + i from n`,
      args: [],
    }]);
    const first = async (from: number, to: number) =>
      (await app.call(
        `GET /api/messages/inbound?page_size=1&received_from=${now + from}&received_to=${now + to}`,
      ))
        .map((one: { content: string }) => Number(one.content));
    expect(await first(1, 12_000)).toEqual([12_000]);
    expect(await first(1, 9_000)).toEqual([9_000]);
    expect(await first(500, 600)).toEqual([600]);
    expect(await first(12_001, 13_000)).toEqual([]);
    expect(
      (await app.send(`GET /api/messages/inbound?received_from=${now + 1}`)).headers.get("x-total-count"),
    )
      .toBe("10000+");
  });
});
