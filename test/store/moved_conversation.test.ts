import { expect, it } from "vitest";
import { moveConversation } from "../../src/store/chat/moved_conversation.ts";
import { Database } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";

const [FROM, TO] = ["phone:-5", "phone:-1005"] as const;

function settle(key: string, at: number, runs: number, tokens: number) {
  const sql = "insert into ledger (target, at, runs, tokens, ms, nano_usd) values (?, ?, ?, ?, ?, ?)";
  return { sql, args: [`session:${key}`, at, runs, tokens, 10 * tokens, 100 * tokens] };
}

it("moveConversation() adds up the use of both conversations (contract 14)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 0);
  const old = [settle(FROM, 1, 8, 500), settle(FROM, 2, 9, 600), settle(FROM, 4, 10, 650)];
  await db.write([...old, settle(TO, 3, 1, 7), settle(TO, 4, 2, 9), settle("phone:-6", 5, 1, 1)]);
  const read = () => db.read("select target, at, runs, tokens, ms, nano_usd from ledger order by at, runs");
  const total = (at: number, runs: number, tokens: number) => ({
    target: `session:${TO}`,
    at,
    runs,
    tokens,
    ms: 10 * tokens,
    nano_usd: 100 * tokens,
  });
  const merged = [
    total(1, 8, 500),
    total(2, 9, 600),
    total(3, 10, 607),
    expect.anything(),
    total(4, 12, 659),
  ];
  for (let moves = 0; moves < 2; moves++) {
    await db.write(moveConversation(FROM, TO));
    expect(await read()).toEqual([...merged, { ...total(5, 1, 1), target: "session:phone:-6" }]);
  }
});
