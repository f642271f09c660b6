import { rate } from "./load.ts";
import { median, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const ROUNDS = 3;
const TOKENS = 10_000;
const SHARE_MIN = 0.9;

/** What a request with a named token costs when there is one of them, and when there are ten thousand (contract 9). */
export async function benchTokens(): Promise<Row[]> {
  await using one = await BenchService.start();
  await using many = await BenchService.start();
  const make = (service: BenchService, name: string) =>
    service.call("POST /api/tokens", { name, scopes: ["read:*"] });
  const [lonely, first] = [await make(one, "first"), await make(many, "first")];
  for (let made = 1; made < TOKENS; made += 100) {
    await Promise.all(Array.from({ length: 100 }, (_, index) => make(many, `token ${made + index}`)));
  }
  const rates = { alone: [] as number[], among: [] as number[] };
  // In turns, so that neither has a quieter machine.
  for (let round = 0; round < ROUNDS; round++) {
    rates.alone.push(await rate(`${one.url}/api/workers`, { token: lonely.token }));
    rates.among.push(await rate(`${many.url}/api/workers`, { token: first.token }));
  }
  const share = median(rates.among) / median(rates.alone);
  return [{
    what: `a request with one of ${TOKENS} tokens`,
    value: median(rates.among),
    unit: "/s",
    bare: median(rates.alone),
    beside: "with the only one",
    says: `${(100 * share).toFixed(0)} % of it`,
    goal: `at least ${100 * SHARE_MIN} %`,
    met: share >= SHARE_MIN,
  }];
}
