import { expect, it } from "vitest";
import { yieldToLoop } from "../../src/base/yield_to_loop.ts";

const WORK_MS = 6;
const TURNS_MAX = 300;

it("turn lets the network respond between steps of long work (facts, Deno 12) [BYT-4]", async () => {
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    () => new Response("ok"),
  );
  let answers = 0;
  const asking = (async () => {
    for (; answers < 5; answers++) await (await fetch(`http://127.0.0.1:${server.addr.port}/`)).text();
  })();
  let turns = 0;
  for (; answers < 5 && turns < TURNS_MAX; turns++) {
    for (const until = performance.now() + WORK_MS; performance.now() < until;);
    await yieldToLoop();
  }
  await asking;
  expect(turns).toBeLessThan(TURNS_MAX);
});
